package network

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/network/ends"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// machineOn returns the interface of a virtual machine on a network.
func machineOn(n spec.Network, name, address string) spec.NIC {
	nic := spec.NIC{Name: "eth0", Network: n.Name, Bridge: n.Bridge, HostIfName: name, MAC: "02:00:00:00:07:01",
		Address: netip.MustParsePrefix(address + "/24"), MTU: 1400, Kind: n.Kind}
	if n.Kind == site.Routed {
		nic.Via = gateway(n).Addr().String()
	}
	return nic
}

func closeAll(open []*os.File) error {
	var errs []error
	for _, f := range open {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// ofHere makes /sys show the links of this network namespace.
func ofHere(t *testing.T) {
	t.Helper()
	must(t, unix.Mount("sysfs", "/sys", "sysfs", 0, ""))
}

// asks makes a machine send an ARP request for an address, from a given address. It reports whether
// there is an answer.
func asks(t *testing.T, tap *os.File, from, address string) bool {
	t.Helper()
	mac, _ := net.ParseMAC("02:00:00:00:07:01")
	all := net.HardwareAddr{255, 255, 255, 255, 255, 255}
	question := frame{mac, all, nil, unix.ETH_P_ARP, arpOf(1, mac, from, address)}
	header := make([]byte, 10) // a virtio header
	_, err := tap.Write(append(header, question.bytes()...))
	must(t, err)
	must(t, tap.SetReadDeadline(time.Now().Add(timeout/4)))
	sender := netip.MustParseAddr(address).As4()
	for b := make([]byte, 4096); ; {
		n, err := tap.Read(b)
		if err != nil {
			return false
		}
		// An answer: its type, and its sender.
		if n >= 10+42 && bytes.Equal(b[22:24], []byte{8, 6}) && b[31] == 2 && bytes.Equal(b[38:42], sender[:]) {
			return true
		}
	}
}

// TestTap: the link of a virtual machine is on its bridge, guarded like that of a container, moves
// with others, and outlives the machine.
//
// Promise (Virtual machines): A machine sends only as itself, and nobody else can open its link.
// With network.TestTapOfRoutedNetwork.
func TestTap(t *testing.T) {
	if !sandboxOfRoot(t) {
		return
	}
	ofHere(t)
	makeAll(t, closed, quarantined)
	guarded(t, closed, "orv2", "10.8.69.12/24")
	nic := machineOn(closed, "orv1", "10.8.69.11")
	must(t, AddAntiSpoof(t.Context(),
		[]Port{{Link: nic.HostIfName, Bridge: nic.Bridge, MAC: nic.MAC, Addresses: nic.Addresses()}}))
	open, err := ends.OpenTap(nic, site.Bridge, 1)
	must(t, err)
	if len(open) != 1 || ends.BridgeOf("orv1") != closed.Bridge || ends.BridgeOfNIC(nic, site.Bridge) != closed.Bridge {
		t.Fatalf("%d open, on %q", len(open), ends.BridgeOf("orv1"))
	}
	for file, want := range map[string]string{"mtu": "1400", "owner": "0", "group": "0", "carrier": "1"} {
		text, err := os.ReadFile("/sys/class/net/orv1/" + file)
		if err != nil || strings.TrimSpace(string(text)) != want {
			t.Errorf("%s is %s: %v", file, text, err)
		}
	}
	if text, err := os.ReadFile("/proc/sys/net/ipv6/conf/orv1/disable_ipv6"); err == nil && text[0] != '1' {
		t.Error("the host takes addresses from it")
	}
	tap := open[0]
	if !asks(t, tap, "10.8.69.11", "10.8.69.12") {
		t.Error("it reaches nobody")
	}
	if asks(t, tap, "10.8.69.13", "10.8.69.12") {
		t.Error("it speaks as another")
	}
	must(t, MoveLinks(context.Background(), []Move{{"orv1", quarantined.Bridge}}))
	if ends.BridgeOfNIC(nic, site.Bridge) != quarantined.Bridge || asks(t, tap, "10.8.69.11", "10.8.69.12") {
		t.Errorf("it is on %s", ends.BridgeOf("orv1"))
	}
	same(t, []spec.Network{closed, quarantined})

	// The machine ends, and another one opens the tap again.
	must(t, tap.Close())
	again, err := ends.OpenTap(nic, site.Bridge, 0)
	must(t, err)
	if ends.BridgeOf("orv1") != closed.Bridge || !asks(t, again[0], "10.8.69.11", "10.8.69.12") {
		t.Error("it is not there again")
	}
	must(t, closeAll(again))
	must(t, RemoveLinks([]string{"orv1", "orv2"}))
	if ends.BridgeOfNIC(nic, site.Bridge) != "" {
		t.Error("it is still somewhere")
	}

	several, err := ends.OpenTap(nic, site.Bridge, 4)
	if err != nil || len(several) != 4 {
		t.Errorf("%d queues: %v", len(several), err)
	}
	must(t, closeAll(several))
	if _, err := ends.OpenTap(nic, site.Macvlan, 1); err == nil {
		t.Error("a machine has a macvlan")
	}
	must(t, RemoveLinks([]string{"orv1"}))
	lost := nic
	lost.Bridge = "orb0000000000"
	if _, err := ends.OpenTap(lost, site.Bridge, 1); err == nil {
		t.Error("it is on a bridge that is not there")
	}
	removeAll(t, closed, quarantined)
	nothingLeft(t)
}

// TestTapOfRoutedNetwork: a machine on a routed network reaches its gateway and all other nodes of
// the network, and nothing when it uses another node's address.
func TestTapOfRoutedNetwork(t *testing.T) {
	if !sandboxOfRoot(t) {
		return
	}
	ofHere(t)
	makeAll(t, venet)
	name := site.RoutedName(venet.Site, venet.Site, "a", venet.Name)
	nic := machineOn(venet, name, "10.8.71.11")
	open, err := ends.OpenTap(nic, site.Routed, 1)
	must(t, err)
	other := newPlace(t, site.RoutedName(venet.Site, venet.Site, "b", venet.Name), "10.8.71.12/24", "10.8.71.1")
	other.route(t, venet, "10.8.71.12")
	for _, address := range []string{"10.8.71.1", "10.8.71.12"} {
		if !asks(t, open[0], "10.8.71.11", address) {
			t.Errorf("nobody answers for %s", address)
		}
	}
	if asks(t, open[0], "10.8.71.13", "10.8.71.12") {
		t.Error("it speaks as another")
	}
	if ends.BridgeOfNIC(nic, site.Routed) != venet.Bridge || ends.BridgeOf(name) != "" {
		t.Errorf("it is on %q", ends.BridgeOfNIC(nic, site.Routed))
	}
	must(t, closeAll(open))
	must(t, RemoveLinks([]string{name, other.name}))
	if ends.BridgeOfNIC(nic, site.Routed) != "" {
		t.Error("it is still somewhere")
	}
	removeAll(t, venet)
	nothingLeft(t)
}

// TestLay: the host's end of a link on a routed network answers for the gateway, forwards packets,
// and does nothing else.
func TestLay(t *testing.T) {
	if !sandbox(t) {
		return
	}
	makeAll(t, venet)
	name := site.RoutedName(venet.Site, venet.Site, "a", venet.Name)
	nic := machineOn(venet, name, "10.8.71.11")
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: "peer"}))
	must(t, ends.SetUpRouted(nic))
	for file, want := range map[string]string{
		"ipv4/conf/%s/forwarding": "1", "ipv4/conf/%s/proxy_arp": "1", "ipv4/neigh/%s/proxy_delay": "0",
		"ipv4/conf/%s/rp_filter":  "1",
		"ipv4/conf/%s/arp_ignore": "1", "ipv6/conf/%s/disable_ipv6": "1",
	} {
		text, err := os.ReadFile(filepath.Join("/proc/sys/net", strings.ReplaceAll(file, "%s", name)))
		if err != nil || strings.TrimSpace(string(text)) != want {
			t.Errorf("%s is %q instead of %s: %v", file, text, want, err)
		}
	}
	link, err := netlink.LinkByName(name)
	must(t, err)
	addresses, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	must(t, err)
	if len(addresses) != 1 || addresses[0].IPNet.String() != "10.8.71.1/32" {
		t.Errorf("addresses: %v", addresses)
	}
	routes, err := netlink.RouteList(link, netlink.FAMILY_V4)
	must(t, err)
	if len(routes) != 1 || routes[0].Dst.String() != "10.8.71.11/32" || routes[0].Src.String() != "10.8.71.1" {
		t.Errorf("routes: %v", routes)
	}
	if !ends.IsUp(link) {
		t.Error("the link is down")
	}
}
