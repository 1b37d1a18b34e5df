package network

import (
	"strings"
	"testing"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestBetweenRules shows the table of a site with a network on several hosts: plain, encrypted,
// over IPv6, with a router, on a bridge of the host, and without other hosts.
func TestBetweenRules(t *testing.T) {
	n := onMany()
	n.Gateway, n.NAT = "", false
	encrypted, six, router, wire, alone := n, n, n, n, n
	encrypted.VXLAN.Key = "a key"
	six.VXLAN = spec.VXLAN{ID: 4712, Local: "2001:db8::1", Peers: "2001:db8::2 02:00:00:00:00:02"}
	six.Gateway = "10.99.1.1/24"
	router.Gateway, router.NAT, router.Router = "10.99.1.1/24", true, true
	wire.VXLAN, wire.Uplink = spec.VXLAN{}, spec.Uplink{Bridge: "br0"}
	alone.VXLAN.Peers = ""
	var all []rule
	for _, c := range []struct {
		name string
		spec.Network
	}{{"hosts", onMany()}, {"encrypted", encrypted}, {"six", six}, {"router", router}, {"wire", wire}, {"alone", alone}} {
		c.Name = c.name
		all = append(all, interHostRules(c.Network)...)
	}
	golden(t, "testdata/between.txt", all)
	wire.Name, wire.Host = "wire", "tcp/22"
	golden(t, "testdata/wire.txt", hostBridgeRules(wire))
}

// TestFromNodes: a packet that arrives on one of Orrery's own links is from a node and not from a
// host. No other link matches, even if an interface of the host is called orange0.
func TestFromNodes(t *testing.T) {
	for name, node := range map[string]bool{
		"orange0": false, "or0": false, "eth0": false,
		site.BridgeName("toykat", "lan"): true, site.VethName("toykat", "a", "lan"): true,
		site.RoutedName("toykat", "toykat", "a", "lan"): true, "oro0123456789": true,
	} {
		got := false
		for _, prefix := range ownLinks {
			got = got || strings.HasPrefix(name, prefix)
		}
		if got != node {
			t.Errorf("what comes in by %s is from a node: %v", name, got)
		}
	}
}

// TestOfNobody: a network without other hosts accepts nothing from any host.
func TestOfNobody(t *testing.T) {
	n := onMany()
	n.VXLAN.Peers = ""
	for _, r := range interHostRules(n) {
		if r.chain == input && r.verdict == accept {
			t.Errorf("it takes %s", r)
		}
	}
}
