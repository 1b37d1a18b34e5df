package network

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// wires makes a host's bridge br0 with an address and a card, and a card w0 whose other end w1 is
// in another place. It returns a function that describes them.
func wires(t *testing.T) func() string {
	t.Helper()
	for _, line := range []string{
		"link add br0 type bridge forward_delay 0", "link add card0 type veth peer name card1", "link set card0 master br0",
		"link set card0 up", "link set br0 up", "address add 192.0.2.1/24 dev br0", "route add 198.51.100.0/24 via 192.0.2.9",
		"link add w0 type veth peer name w1", "link set w0 up", "link set w1 up",
	} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v\n%s", line, err, out)
		}
	}
	return func() string {
		out, err := exec.Command("sh", "-c",
			"for i in br0 card0 w0; do ip -d link show $i | sed 's/ gc_timer.*//; s/hello_timer.*//; s/promiscuity/& /'; ip -4 addr show $i; done; bridge link; ip -4 route").CombinedOutput()
		must(t, err)
		return string(out)
	}
}

// TestUplink: a network is joined with a VLAN of an interface or with a bridge of the host. These
// are unchanged after the network is removed. Machines on the wire reach the network's nodes, and
// the host is reachable only for its own nodes.
func TestUplink(t *testing.T) {
	if !sandbox(t) {
		return
	}
	ctx := context.Background()
	state := wires(t)
	uplinks := map[string]spec.Uplink{"a bridge": {Bridge: "br0"}}
	if exec.Command("ip", strings.Fields("link add link w1 name there type vlan id 100")...).Run() == nil {
		uplinks["a VLAN"] = spec.Uplink{Interface: "w0", VLAN: 100}
		for _, line := range []string{"link add far type bridge", "link set far up", "link set there master far",
			"link set there up"} {
			must(t, exec.Command("ip", strings.Fields(line)...).Run())
		}
	} else { // scenarios/metal tests it
		t.Run("VLAN", func(t *testing.T) { t.Skip("this kernel has no VLANs") })
	}
	before := state()
	for what, u := range uplinks {
		n := spec.Network{Site: "toykat", Name: "lan", Bridge: site.BridgeName("toykat", "lan"), Subnet: "10.99.1.0/24",
			Gateway: "10.99.1.1/24", NAT: true, MTU: 1500, Uplink: u}
		made := func(why string) {
			t.Helper()
			must(t, Make(ctx, n, noNodes))
			if got := theOne(t); !got.Matches(&n) {
				t.Errorf("%s, %s: %+v, not %+v", what, why, got, n)
			}
		}
		made("new")
		made("again")
		node := newPlace(t, "orvnode", "10.99.1.11/24", "10.99.1.1")
		node.join(t, n.Bridge)
		node.do(t, answer)
		beyond := newPlace(t, "beyond", "10.99.1.12/24", "")
		if u.Bridge != "" {
			beyond.join(t, "br0")
			must(t, exec.Command("bridge", "link", "set", "dev", "beyond", "state", "3").Run())
		} else {
			beyond.join(t, "far")
		}
		beyond.do(t, answer)
		node.reaches(t, "10.99.1.12", "10.99.1.11")
		if !node.pings("10.99.1.1") {
			t.Errorf("%s: a node does not reach its gateway", what)
		}
		beyond.reaches(t, "10.99.1.11", "10.99.1.12")
		if beyond.pings("10.99.1.1") {
			t.Errorf("%s: somebody on the wire reaches the gateway of this host", what)
		}

		device, err := netlink.LinkByName(site.VXLANName(n.Site, n.Name))
		must(t, err)
		for _, harm := range []string{"ip link set " + device.Attrs().Name + " down", "ip link del " + device.Attrs().Name,
			"nft delete table bridge orrery." + device.Attrs().Name} {
			if out, err := exec.Command("sh", "-c", harm).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", harm, err, out)
			}
			if got := theOne(t); got.Matches(&n) {
				t.Errorf("%s: not seen: %s", what, harm)
			}
			made("after " + harm)
		}
		n.Uplink, n.VXLAN = spec.Uplink{}, onMany().VXLAN
		n.MTU = 1450
		made("joined with hosts")
		n.Uplink, n.VXLAN, n.MTU = u, spec.VXLAN{}, 1500
		made("joined with the wire once more")
		must(t, Remove(ctx, n))
		for _, name := range []string{"orvnode", "beyond"} {
			link, err := netlink.LinkByName(name)
			must(t, err)
			must(t, netlink.LinkDel(link))
		}
		if now := state(); now != before {
			t.Errorf("%s: what the host has was\n%s\nand is\n%s", what, before, now)
		}
	}
	for what, c := range map[string]struct {
		with spec.Uplink
		mtu  int
		says string
	}{
		"not there": {spec.Uplink{Bridge: "br7"}, 1500, "the host has no interface br7"},
		"no bridge": {spec.Uplink{Bridge: "w0"}, 1500, "w0 is not a bridge but a veth"},
		"taken": {spec.Uplink{Interface: "w1", VLAN: 100}, 1500,
			"the host already has vlan 100 of w1, as there"},
		"down":               {spec.Uplink{Interface: "card1", VLAN: 5}, 1500, "card1 is down"},
		"loopback":           {spec.Uplink{Interface: "lo", VLAN: 5}, 1500, "no other host is reachable through lo"},
		"too large":          {spec.Uplink{Bridge: "br0"}, 1501, "mtu 1501 is more than the 1500 of br0"},
		"no VLAN":            {spec.Uplink{Interface: "w0", VLAN: 4095}, 1500, "cannot be joined"},
		"both":               {spec.Uplink{Interface: "w0", VLAN: 5, Bridge: "br0"}, 1500, "cannot be joined"},
		"an interface alone": {spec.Uplink{Interface: "w0"}, 1500, "cannot be joined"},
	} {
		n := spec.Network{Site: "toykat", Name: "lan", Bridge: site.BridgeName("toykat", "lan"), Subnet: "10.99.1.0/24",
			MTU: c.mtu, Uplink: c.with}
		if c.with.VLAN == 100 && len(uplinks) == 1 {
			continue
		}
		if err := Make(ctx, n, noNodes); c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", what, err)
		}
		must(t, Remove(ctx, n))
	}
}
