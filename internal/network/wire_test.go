package network

import (
	"fmt"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"orrery/internal/network/vxlan"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// onBridge returns a network of a site that is joined with the host's br0 and shares its subnet.
func onBridge(siteName string) spec.Network {
	return spec.Network{
		Site: siteName, Name: "lan", Bridge: site.BridgeName(siteName, "lan"), Subnet: "192.0.2.0/24", MTU: 1500,
		Uplink: spec.Uplink{Bridge: "br0"},
	}
}

// reachesOverIPv6 reports whether a place connects to the host's link-local address on br0.
func (p *place) reachesOverIPv6(t *testing.T) bool {
	t.Helper()
	br0, err := netlink.LinkByName("br0")
	must(t, err)
	addresses, err := netlink.AddrList(br0, netlink.FAMILY_V6)
	must(t, err)
	if len(addresses) == 0 {
		t.Fatal("the host has no IPv6 address on br0: there is nothing to reach")
	}
	return p.in(func() error {
		c, err := net.DialTimeout("tcp6", fmt.Sprintf("[%s%%eth0]:%s", addresses[0].IP, port), unheard)
		if err == nil {
			c.Close()
		}
		return err
	}) == nil
}

// TestHostOnItsBridge: on a network that is joined with a bridge where the host has its addresses,
// a node reaches the same ports of the host as at a gateway.
//
// Promise (Networks): With `bridge =`, a node reaches of the host only what it would reach at a
// gateway, and the host forwards nothing for it.
func TestHostOnItsBridge(t *testing.T) {
	if !sandbox(t) {
		return
	}
	setting(t, "net.ipv4.ip_forward", "1")
	wires(t)
	must(t, answer())
	six, err := net.Listen("tcp6", "[::]:"+port)
	if err == nil {
		defer six.Close()
	}
	outside := newPlace(t, "up0", "203.0.113.2/24", "203.0.113.1")
	outside.do(t, answer)
	must(t, exec.Command("ip", "address", "add", "203.0.113.1/24", "dev", "up0").Run())

	n := onBridge("toykat")
	makeAll(t, n, cam)
	node := newPlace(t, "orvnode", "192.0.2.11/24", "192.0.2.1")
	node.join(t, n.Bridge)
	node.do(t, answer)
	beyond := newPlace(t, "beyond", "192.0.2.12/24", "192.0.2.1")
	beyond.plug(t, "br0")
	beyond.do(t, answer)

	closed := func(why string) {
		t.Helper()
		node.misses(t, "192.0.2.1", "10.8.67.1", "203.0.113.1", "203.0.113.2")
		if node.reachesOverIPv6(t) {
			t.Errorf("%s: a node reaches the host over IPv6", why)
		}
		if !node.pings("192.0.2.1") {
			t.Errorf("%s: a node does not see whether the host is there", why)
		}
		node.reaches(t, "192.0.2.12", "192.0.2.11")
		beyond.reaches(t, "192.0.2.11", "192.0.2.12")
		beyond.reaches(t, "192.0.2.1", "192.0.2.12")
		if _, err := call("192.0.2.11", timeout); err != nil {
			t.Errorf("%s: the host does not reach its node: %v", why, err)
		}
	}
	time.Sleep(2 * time.Second) // until duplicate address detection is over
	closed("new")
	if !beyond.reachesOverIPv6(t) {
		t.Error("who is on the wire does not reach the host over IPv6: the test shows nothing")
	}
	beyond.reaches(t, "203.0.113.2", "192.0.2.12")

	// Two sites are on the bridge. A port that one of them opens is not open to nodes of the other,
	// and that site does not close it.
	open, other := n, onBridge("karoo")
	if vxlan.Mark(n) == vxlan.Mark(other) {
		t.Fatal("both networks have one mark: choose other names")
	}
	open.Host = "tcp/" + port
	makeAll(t, open, other)
	node.reaches(t, "192.0.2.1", "192.0.2.11")
	node.misses(t, "203.0.113.2")
	shut := newPlace(t, "orvshut", "192.0.2.13/24", "192.0.2.1")
	shut.join(t, other.Bridge)
	shut.misses(t, "192.0.2.1")
	if !shut.pings("192.0.2.1") {
		t.Error("a node of the other site does not see whether the host is there")
	}
	same(t, []spec.Network{open})
	makeAll(t, n)
	closed("closed again")

	must(t, RemoveLinks([]string{"orvnode", "orvshut"}))
	removeAll(t, n, other, cam)
	nothingLeft(t)
}
