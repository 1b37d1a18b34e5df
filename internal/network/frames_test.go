package network

import (
	"context"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/network/ends"
	"orrery/internal/network/ports"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/test/frames"
)

// party returns the party for a place.
func (p *place) party(t *testing.T) frames.Party {
	t.Helper()
	address := p.port(t, "").Addresses[0]
	return frames.Party{MAC: p.mac(t), IPv4: address.Addr()}
}

// floods makes bridges flood group frames to all ports. Otherwise group membership would decide
// which frames arrive.
func floods(t *testing.T, bridges ...string) {
	t.Helper()
	for _, b := range bridges {
		must(t, exec.Command("ip", "link", "set", b, "type", "bridge", "mcast_snooping", "0").Run())
	}
	for _, key := range []string{"iptables", "ip6tables", "arptables"} { // these check whether packets are well-formed
		if exists("/proc/sys/net/bridge/bridge-nf-call-" + key) {
			setting(t, "net.bridge.bridge-nf-call-"+key, "0")
		}
	}
}

// raw makes a place send frames unchanged.
func (p *place) raw(t *testing.T, all ...[]byte) {
	t.Helper()
	p.do(t, func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for _, f := range all {
			if err := unix.Sendto(fd, f, 0, &unix.SockaddrLinklayer{Ifindex: link.Attrs().Index, Halen: 6}); err != nil {
				return err
			}
		}
		return nil
	})
}

// heardOf makes a place send a frame of each kind, as itself or posing as another. It returns the
// kinds that a third place receives.
func (p *place) heardOf(t *testing.T, at, other *place) []string {
	t.Helper()
	return heardAt(t, at, p.party(t), other.party(t), func(all ...[]byte) { p.raw(t, all...) })
}

// heardAt sends a frame of each kind by a function and returns the kinds that a place receives.
func heardAt(t *testing.T, at *place, me, posed frames.Party, send func(all ...[]byte)) []string {
	t.Helper()
	var seen func() [][]byte
	must(t, at.in(func() error { seen = capture(t, "eth0"); return nil }))
	var all [][]byte
	for _, k := range frames.All() {
		all = append(all, k.Frame(me, posed))
	}
	send(all...)
	var names []string
	for _, b := range seen() {
		if name, ok := frames.Find(b); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// allowed returns the kinds that a node may send.
func allowed() []string {
	var names []string
	for _, k := range frames.All() {
		if k.Allowed {
			names = append(names, k.Name)
		}
	}
	slices.Sort(names)
	return names
}

// hears fails the test unless a place receives exactly the kinds that nodes may send, with some
// exceptions.
func hears(t *testing.T, where string, got []string, but ...string) {
	t.Helper()
	want := slices.DeleteFunc(allowed(), func(name string) bool { return slices.Contains(but, name) })
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("%s: %s does not pass", where, name)
		}
	}
	for _, name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("%s: %s passes", where, name)
		}
	}
	if t.Failed() {
		t.Logf("%s hears %d kinds: %s", where, len(got), strings.Join(got, " "))
	}
}

// TestKindsOfFrames: the same frames are allowed on every network. Package ports tests each kind of
// frame, and this test covers the ways by which frames could bypass the port.
func TestKindsOfFrames(t *testing.T) {
	if !sandboxOfRoot(t) {
		return
	}
	twin := twinOf("dev1", data)
	router := routerOf("dev2", data)
	joined := onMany()
	joined.Uplink, joined.VXLAN.Local = spec.Uplink{}, "127.0.0.1"
	makeAll(t, closed, quarantined, twin, router, joined)
	floods(t, closed.Bridge, quarantined.Bridge, twin.Bridge, router.Bridge, joined.Bridge)
	bad, _ := guarded(t, closed, "orv1", "10.8.69.11/24")
	good, _ := guarded(t, closed, "orv2", "10.8.69.12/24")
	hears(t, "on its network", bad.heardOf(t, good, good))
	for what, n := range map[string]spec.Network{
		"in quarantine": quarantined, "in a twin": twin, "in a twin with a router": router, "joined with other hosts": joined,
	} {
		must(t, MoveLinks(context.Background(), []Move{{"orv1", n.Bridge}, {"orv2", n.Bridge}}))
		hears(t, what, bad.heardOf(t, good, good))
	}
	must(t, MoveLinks(context.Background(), []Move{{"orv1", closed.Bridge}, {"orv2", closed.Bridge}}))

	// The link is removed, as when the node restarts, and made again under its name.
	must(t, RemoveLinks([]string{"orv1"}))
	again := newPlace(t, "orv1", "10.8.69.11/24", "")
	must(t, AddAntiSpoof(t.Context(), []Port{again.port(t, closed.Bridge)}))
	link, err := netlink.LinkByName("orv1")
	must(t, err)
	bridge, err := netlink.LinkByName(closed.Bridge)
	must(t, err)
	must(t, netlink.LinkSetMaster(link, bridge))
	hears(t, "after a restart", again.heardOf(t, good, good))

	// The allowed protocols change with the network.
	timed := closed
	timed.Protocols = "0x88f7"
	makeAll(t, timed)
	same(t, []spec.Network{timed, quarantined})
	if got := again.heardOf(t, good, good); !slices.Contains(got, "ptp") || slices.Contains(got, "experimental") {
		t.Errorf("a network that allows PTP: %s", strings.Join(got, " "))
	}
	makeAll(t, closed)
	hears(t, "when PTP is no longer allowed", again.heardOf(t, good, good))

	must(t, RemoveLinks([]string{"orv1", "orv2"}))
	removeAll(t, closed, quarantined, twin, router, joined)
	nothingLeft(t)
}

// TestKindsOfFramesOfMachines: the tap of a virtual machine is guarded like the link of a
// container.
func TestKindsOfFramesOfMachines(t *testing.T) {
	if !sandboxOfRoot(t) {
		return
	}
	ofHere(t)
	makeAll(t, closed)
	floods(t, closed.Bridge)
	good, _ := guarded(t, closed, "orv2", "10.8.69.12/24")
	nic := machineOn(closed, "orv1", "10.8.69.11")
	must(t, AddAntiSpoof(t.Context(),
		[]Port{{Link: nic.HostIfName, Bridge: nic.Bridge, MAC: nic.MAC, Addresses: nic.Addresses()}}))
	open, err := ends.OpenTap(nic, site.Bridge, 1)
	must(t, err)
	defer open[0].Close()
	mac, err := net.ParseMAC(nic.MAC)
	must(t, err)
	me := frames.Party{MAC: mac, IPv4: netip.MustParseAddr("10.8.69.11")}
	hears(t, "from a machine", heardAt(t, good, me, good.party(t), func(all ...[]byte) {
		for _, f := range all {
			_, err := open[0].Write(append(make([]byte, 10), f...)) // after a virtio header
			must(t, err)
		}
	}))
}

// TestKindsOfFramesRouted: on a routed network, which has no bridge, only IPv4 packets with a
// node's own address reach other nodes.
func TestKindsOfFramesRouted(t *testing.T) {
	if !sandbox(t) {
		return
	}
	setting(t, "net.ipv4.ip_forward", "1")
	makeAll(t, venet)
	bad := newPlace(t, site.RoutedName("karoo", "karoo", "a", "venet"), "10.8.71.11/24", "10.8.71.1")
	bad.route(t, venet, "10.8.71.11")
	good := newPlace(t, site.RoutedName("karoo", "karoo", "b", "venet"), "10.8.71.12/24", "10.8.71.1")
	good.route(t, venet, "10.8.71.12")
	host, err := netlink.LinkByName(bad.name)
	must(t, err)
	me, other := bad.party(t), good.party(t)
	other.MAC = host.Attrs().HardwareAddr // the host forwards packets that are sent to it
	var seen func() [][]byte
	must(t, good.in(func() error { seen = capture(t, "eth0"); return nil }))
	for _, k := range frames.All() {
		bad.raw(t, k.Frame(me, other))
	}
	near, err := netlink.LinkByName(good.name)
	must(t, err)
	passed := 0
	for _, b := range seen() {
		asks := slices.Equal(b[12:14], []byte{8, 6}) && slices.Equal(b[6:12], near.Attrs().HardwareAddr)
		if asks || slices.Equal(b[6:12], good.mac(t)) {
			continue // ARP requests of the host, and its own packets
		}
		if len(b) < 34 || !slices.Equal(b[12:14], []byte{8, 0}) || !slices.Equal(b[26:30], me.IPv4.AsSlice()) {
			t.Errorf("a node hears %x", b)
			continue
		}
		passed++
	}
	if passed == 0 {
		t.Error("nothing came at all")
	}
}

// TestAdvertisementsAreNotBelieved: the kernel of a node accepts a router advertisement of its
// neighbour, unless the neighbour's port drops it.
//
// Promise (Networks): Nodes believe no router advertisements. With engine/lxc.TestEngine,
// guest/boot.TestJoin, image/foreign.TestSeedImage, test.TestFrames.
func TestAdvertisementsAreNotBelieved(t *testing.T) {
	if !sandbox(t) {
		return
	}
	if !exists("/proc/sys/net/ipv6/conf/all/accept_ra") {
		t.Skip("not run: no IPv6 in this kernel")
	}
	makeAll(t, closed)
	bad, _ := guarded(t, closed, "orv1", "10.8.69.11/24")
	good, _ := guarded(t, closed, "orv2", "10.8.69.12/24")
	believes := func() bool {
		believed := false
		good.do(t, func() error {
			routes, err := netlink.RouteList(nil, netlink.FAMILY_V6)
			believed = slices.ContainsFunc(routes, func(r netlink.Route) bool { return r.Gw != nil })
			return err
		})
		return believed
	}
	lie := func(until func() bool) {
		advertisement, _ := frames.Named("ra")
		for range 20 { // until duplicate address detection of the receiver is over
			bad.raw(t, advertisement.Frame(bad.party(t), good.party(t)))
			time.Sleep(100 * time.Millisecond)
			if until() {
				return
			}
		}
	}
	lie(believes)
	if believes() {
		t.Error("a node has the route of its neighbour's advertisement")
	}
	must(t, RemoveAntiSpoof(t.Context(), "karoo", nil))
	lie(believes)
	if believes() {
		t.Error("the guard of a port was forgotten whose link is there")
	}
	g, err := ports.Open()
	must(t, err)
	delete(g.Held, "orv1")
	must(t, g.Commit())
	lie(believes)
	if !believes() {
		t.Error("even without a guard nobody believes it: the test shows nothing")
	}
}

// TestBridgeOfTheHost: on a network on a bridge of the host that takes part in the spanning tree,
// no node can become the root of the tree, close the port, or send anything forbidden to the wire.
//
// Promise (Networks): No node becomes the root of a spanning tree of the host's bridge, or closes a
// port there.
func TestBridgeOfTheHost(t *testing.T) {
	if !sandbox(t) {
		return
	}
	ofHere(t)
	wires(t)
	n := spec.Network{
		Site: "toykat", Name: "lan", Bridge: site.BridgeName("toykat", "lan"), Subnet: "10.99.1.0/24", MTU: 1500,
		Uplink: spec.Uplink{Bridge: "br0"},
	}
	makeAll(t, n)
	floods(t, n.Bridge, "br0")
	bad, _ := guarded(t, n, "orv1", "10.99.1.11/24")
	beyond := newPlace(t, "beyond", "10.99.1.13/24", "")
	beyond.plug(t, "br0")
	hears(t, "on a wire without a tree", bad.heardOf(t, beyond, beyond), "ipv4-to-bridges")

	must(t, exec.Command("ip", "link", "set", "br0", "type", "bridge", "stp_state", "1", "priority", "40000").Run())
	forwarding := func() bool {
		out, err := exec.Command("bridge", "link", "show").CombinedOutput()
		must(t, err)
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "master br0") && !strings.Contains(line, "state forwarding") &&
				!strings.Contains(line, "card0") {
				return false
			}
		}
		return true
	}
	for range 100 { // forward_delay is 0, but the tree takes a moment
		if forwarding() {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	root := func() string {
		id, err := os.ReadFile("/sys/class/net/br0/bridge/root_id")
		must(t, err)
		return strings.TrimSpace(string(id))
	}
	before := root()
	for range 5 {
		hears(t, "on the wire", bad.heardOf(t, beyond, beyond), "ipv4-to-bridges")
	}
	if now := root(); now != before || !forwarding() {
		t.Errorf("the root of br0 was %s and is %s; all ports forward: %t", before, now, forwarding())
	}

	// If the network allows spoofing, a node can do that.
	n.Spoof = true
	makeAll(t, n)
	bad.heardOf(t, beyond, beyond)
	if root() == before && forwarding() {
		t.Error("even a node that may send anything does not change the tree: the test shows nothing")
	}
}
