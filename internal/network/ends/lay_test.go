package ends

import (
	"testing"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestLayingScript: the script for who makes links without us, whole. What it does is what Lay does: network.TestLayingScript.
func TestLayingScript(t *testing.T) {
	const want = `#!/bin/sh -e
# Orrery: the host's end of eth0 on the routed network venet.
cd /proc/sys/net
echo 1 >ipv4/conf/orr1/forwarding
echo 1 >ipv4/conf/orr1/proxy_arp
echo 0 >ipv4/neigh/orr1/proxy_delay
echo 1 >ipv4/conf/orr1/rp_filter
echo 1 >ipv4/conf/orr1/arp_ignore
if [ -e ipv6/conf/orr1/disable_ipv6 ]; then echo 1 >ipv6/conf/orr1/disable_ipv6; fi
ip address replace 10.8.71.1/32 dev orr1
ip link set orr1 up
ip route replace 10.8.71.11/32 dev orr1 src 10.8.71.1
`
	nic := spec.NIC{Name: "eth0", Network: "venet", HostEnd: "orr1", Address: "10.8.71.11/24", Via: "10.8.71.1"}
	if got := string(LayingScript(nic)); got != want {
		t.Errorf("got\n%s", got)
	}
}

// TestNoTap: a machine is on no network whose interfaces containers take or stand on.
func TestNoTap(t *testing.T) {
	for _, kind := range []string{site.Macvlan, site.Exclusive} {
		if _, err := OpenTap(spec.NIC{Name: "eth0", HostEnd: "orv1"}, kind, 1); problem.Exit(err) != int(problem.Unable) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestWhereabouts: a link that is not there is nowhere, whatever is on record.
func TestWhereabouts(t *testing.T) {
	nic := spec.NIC{HostEnd: "orvnotthere", Bridge: "orb1"}
	for _, kind := range []string{site.Bridge, site.Routed} {
		if at := Whereabouts(nic, kind); at != "" {
			t.Errorf("%s: at %q", kind, at)
		}
	}
}
