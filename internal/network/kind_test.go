package network

import (
	"context"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"orrery/internal/network/ends"
	"orrery/internal/network/kind"
	"orrery/internal/network/passthrough"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

func kindOf(name, kind, subnet, gateway string, nat bool) spec.Network {
	n := declared("karoo", name, subnet, gateway, nat)
	n.Kind = kind
	return n
}

var (
	venet = kindOf("venet", site.Routed, "10.8.71.0/24", "10.8.71.1/24", true)
	quiet = kindOf("quiet", site.Routed, "10.8.72.0/24", "10.8.72.1/24", false)
	wire  = spec.VethPairOf("karoo", site.VethPair{Name: "wire", Ends: [2]string{"w0", "w1"}, MTU: 1500})
	nics  = kindOf("nics", site.Exclusive, "10.8.74.0/24", "", false)
)

func macvlanOn(parent string) spec.Network {
	n := kindOf("mac", site.Macvlan, "10.8.73.0/24", "10.8.73.1/24", false)
	n.Parent = parent
	return n
}

func TestRulesOfRoutedNetworks(t *testing.T) {
	golden(t, "testdata/routed.txt", rules([]spec.Network{venet, quiet, macvlanOn("w0"), nics}))
}

func TestMarkOfKinds(t *testing.T) {
	for _, n := range []spec.Network{venet, quiet, macvlanOn("enp3s0"), nics, wire} {
		want := n
		want.MTU = 0
		if got, ok := readMark(mark(n)); !ok || got != want {
			t.Errorf("mark %q reads %+v", mark(n), got)
		}
	}
	for _, alias := range []string{
		"orrery karoo venet 10.8.71.0/24 - - routed -", "orrery karoo mac 10.8.73.0/24 - - macvlan -",
		"orrery karoo x 10.8.73.0/24 - - tunnel -",
		"orrery karoo vethpair.wire - - - vethpair w0", "orrery karoo vethpair.wire - - - vethpair w0 w0",
		"orrery karoo x 10.8.73.0/24 - - exclusive",
	} {
		if n, ok := readMark(alias); ok {
			t.Errorf("alias %q reads %+v", alias, n)
		}
	}
}

// route sets up a place's link as the host's end of a link on a routed network.
func (p *place) route(t *testing.T, n spec.Network, address string) {
	t.Helper()
	must(t, ends.SetUpRouted(spec.NIC{HostIfName: p.name, Address: netip.MustParsePrefix(address + "/24"),
		Via: gateway(n).Addr().String()}))
}

func TestPacketsKeepToRoutedNetworks(t *testing.T) {
	if !sandbox(t) {
		return
	}
	setting(t, "net.ipv4.ip_forward", "1")
	makeAll(t, cam, venet, quiet)
	node := func(n spec.Network, name, address string) *place {
		p := newPlace(t, site.RoutedName(n.Site, n.Site, name, n.Name), address+"/24", gateway(n).Addr().String())
		p.route(t, n, address)
		p.do(t, answer)
		return p
	}
	a, b := node(venet, "a", "10.8.71.11"), node(venet, "b", "10.8.71.12")
	q, r := node(quiet, "q", "10.8.72.11"), node(quiet, "r", "10.8.72.12")
	c := newPlace(t, "orv1", "10.8.67.11/24", "10.8.67.1")
	c.join(t, cam.Bridge)
	c.do(t, answer)
	outside := newPlace(t, "up0", "192.0.2.2/24", "192.0.2.1")
	outside.do(t, answer)
	uplink, err := netlink.LinkByName("up0")
	must(t, err)
	must(t, setAddress(uplink, "192.0.2.1/24"))
	must(t, answer())
	makeAll(t, cam, venet, quiet) // even while nodes are on them
	same(t, []spec.Network{cam, quiet, venet})

	t.Run("one network", func(t *testing.T) {
		a.reaches(t, "10.8.71.12", "10.8.71.11")
		b.reaches(t, "10.8.71.11", "10.8.71.12")
		q.reaches(t, "10.8.72.12", "10.8.72.11")
		r.reaches(t, "10.8.72.11", "10.8.72.12")
	})
	t.Run("networks", func(t *testing.T) {
		a.misses(t, "10.8.72.11", "10.8.67.11", "10.8.71.99")
		q.misses(t, "10.8.71.11", "10.8.67.11")
		c.misses(t, "10.8.71.11", "10.8.72.11", "10.8.71.1", "10.8.72.1")
	})
	t.Run("gateways", func(t *testing.T) {
		a.reaches(t, "10.8.71.1", "10.8.71.11")
		q.reaches(t, "10.8.72.1", "10.8.72.11")
		a.misses(t, "10.8.72.1", "10.8.67.1")
		q.misses(t, "10.8.71.1", "192.0.2.1")
	})
	t.Run("outside", func(t *testing.T) {
		a.reaches(t, "192.0.2.2", "192.0.2.1")
		q.misses(t, "192.0.2.2")
		outside.misses(t, "10.8.71.11", "10.8.72.11")
	})
	t.Run("from the host", func(t *testing.T) {
		for address, as := range map[string]string{"10.8.71.11": "10.8.71.1", "10.8.72.12": "10.8.72.1"} {
			if seen, err := call(address, timeout); err != nil || seen != as {
				t.Errorf("%s sees %q: %v", address, seen, err)
			}
		}
	})
	t.Run("a forged source", func(t *testing.T) {
		a.do(t, func() error {
			link, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			return setAddress(link, "10.8.71.12/24")
		})
		a.misses(t, "10.8.71.1", "192.0.2.2")
	})
	t.Run("nodes are on it", func(t *testing.T) {
		bridged := venet
		bridged.Kind = ""
		wantRefused(t, bridged, "while nodes are on it")
	})
}

func TestMacvlan(t *testing.T) {
	if !sandbox(t) {
		return
	}
	mac := macvlanOn("w0")
	wantRefused(t, mac, "no interface w0")
	makeAll(t, wire, mac)
	same(t, []spec.Network{mac, wire})
	two := mac
	two.Site, two.Subnet, two.Gateway = "toy", "10.9.73.0/24", ""
	two.Bridge = site.BridgeName(two.Site, two.Name)
	wantRefused(t, two, "is already used by network mac of site karoo")
	wide := mac
	wide.MTU = 9000
	wantRefused(t, wide, "mtu 9000 is more than the 1500")

	node := func(name, address string) *place {
		parent, err := netlink.LinkByName("w0")
		must(t, err)
		p := &place{name: name, fd: -1}
		p.new(t)
		must(t, netlink.LinkAdd(&netlink.Macvlan{
			LinkAttrs: netlink.LinkAttrs{Name: "eth0", ParentIndex: parent.Attrs().Index, Namespace: netlink.NsFd(p.fd)},
			Mode:      netlink.MACVLAN_MODE_BRIDGE,
		}))
		p.do(t, func() error {
			link, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			if err := setAddress(link, address); err != nil {
				return err
			}
			return netlink.LinkSetUp(link)
		})
		p.do(t, answer)
		return p
	}
	must(t, answer())
	a, b := node("a", "10.8.73.11/24"), node("b", "10.8.73.12/24")
	a.reaches(t, "10.8.73.12", "10.8.73.11")
	b.reaches(t, "10.8.73.1", "10.8.73.12")
	if _, err := call("10.8.73.11", timeout); err != nil {
		t.Error(err)
	}

	bridged := mac
	bridged.Kind, bridged.Parent = "", ""
	makeAll(t, bridged) // the macvlan is removed
	same(t, []spec.Network{bridged, wire})
	makeAll(t, mac)
	link, err := netlink.LinkByName("w0")
	must(t, err)
	must(t, netlink.LinkDel(link)) // the macvlan is removed with it
	got, err := Observe("karoo")
	must(t, err)
	if len(got) != 2 || !slices.Equal(got[1].Drift, []observe.NetworkDrift{observe.EndsGone}) ||
		!slices.Equal(got[0].Drift, []observe.NetworkDrift{observe.LinkMissing}) {
		t.Errorf("%+v", got)
	}
	makeAll(t, wire, mac)
	same(t, []spec.Network{mac, wire})
	removeAll(t, wire, mac)
	nothingLeft(t)
}

func TestMacvlanParents(t *testing.T) {
	if !sandbox(t) {
		return
	}
	makeAll(t, cam)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "nic0"
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "nic1"}))
	for parent, why := range map[string]string{cam.Bridge: "cannot have macvlans", "lo": "cannot have macvlans",
		"nic0": "is down"} {
		wantRefused(t, macvlanOn(parent), why)
	}
	nic, err := netlink.LinkByName("nic0")
	must(t, err)
	bridge, err := netlink.LinkByName(cam.Bridge)
	must(t, err)
	must(t, netlink.LinkSetMaster(nic, bridge))
	wantRefused(t, macvlanOn("nic0"), "is part of "+cam.Bridge)
	must(t, netlink.LinkSetNoMaster(nic))
	must(t, up("nic0"))
	makeAll(t, macvlanOn("nic0"))
	removeAll(t, cam, macvlanOn("nic0"))
}

func TestVethPair(t *testing.T) {
	if !sandbox(t) {
		return
	}
	one := spec.VethPairOf("lab", site.VethPair{Name: "one", Ends: [2]string{"x0", "x1"}})
	makeAll(t, one, one, one)
	first, err := netlink.LinkByName("x0")
	must(t, err)
	second, err := netlink.LinkByName("x1")
	must(t, err)
	if first.Attrs().ParentIndex != second.Attrs().Index || !ends.IsUp(first) || !ends.IsUp(second) {
		t.Errorf("%+v %+v", first.Attrs(), second.Attrs())
	}
	makeAll(t, wire)
	other := wire
	other.Site = "toy"
	other.Bridge = site.BridgeName(other.Site, other.Name)
	wantRefused(t, other, "is an end of another veth pair")
	other.Ends = [2]string{"w2", "lo"}
	wantRefused(t, other, "that is not Orrery's")
	longer := wire
	longer.Ends[1], longer.MTU = "w3", 9000
	makeAll(t, longer)
	same(t, []spec.Network{longer})
	if _, err := netlink.LinkByName("w1"); !ends.IsNotFound(err) {
		t.Error("the former end is there")
	}
	// A run that was killed before it could mark the ends.
	link, err := netlink.LinkByName("w0")
	must(t, err)
	must(t, netlink.LinkSetAlias(link, ""))
	makeAll(t, longer)
	removeAll(t, one, one)
	all, err := Observe("")
	must(t, err)
	if len(all) != 1 {
		t.Errorf("%+v", all)
	}
	removeAll(t, specs(all)...)
	nothingLeft(t)
	if left := linkNames(t); slices.Contains(left, "w0") || slices.Contains(left, "w3") {
		t.Errorf("left are %q", left)
	}
}

// TestVethPairMadeBefore: a veth pair that a former version made and marked as a cable is
// recognised, and is not remade.
func TestVethPairMadeBefore(t *testing.T) {
	if !sandbox(t) {
		return
	}
	makeAll(t, wire)
	link := func(name string) netlink.Link {
		l, err := netlink.LinkByName(name)
		must(t, err)
		return l
	}
	const bridge = "orb0e60759079" // of karoo's cable.wire
	must(t, netlink.LinkSetAlias(link(bridge), "orrery karoo cable.wire - - - cable w0 w1"))
	for _, end := range wire.Ends {
		must(t, netlink.LinkSetAlias(link(end), "orrery cable karoo cable.wire"))
	}
	before := link("w0").Attrs().Index
	same(t, []spec.Network{wire})
	makeAll(t, wire)
	same(t, []spec.Network{wire})
	if link("w0").Attrs().Index != before || link("w0").Attrs().Alias != kind.VethPairAlias(wire) ||
		link(bridge).Attrs().Alias != mark(wire) {
		t.Errorf("%+v", link("w0").Attrs())
	}
	removeAll(t, wire)
	nothingLeft(t)
}

// Promise (Networks): A node on a `macvlan` or `exclusive` network reaches no service of the host
// that way. Its interface is not mistaken for another, whatever the node does to it, and the host
// gets it back. With test.TestWire.
func TestPassthrough(t *testing.T) {
	if !sandbox(t) {
		return
	}
	ctx := context.Background()
	makeAll(t, wire, cam)
	link := func(name string) netlink.Link {
		l, err := netlink.LinkByName(name)
		must(t, err)
		return l
	}
	here, err := os.Open("/proc/thread-self/ns/net")
	must(t, err)
	defer here.Close()
	must(t, PreparePassthrough(ctx, spec.NIC{Parent: "w0"}, "karoo/101"))
	p := &place{name: "node", fd: -1}
	p.new(t)
	must(t, netlink.LinkSetNsFd(link("w0"), p.fd))
	if err := PreparePassthrough(ctx, spec.NIC{Parent: "w0"}, "karoo/102"); err == nil ||
		!strings.Contains(err.Error(), "no interface w0") {
		t.Error(err)
	}
	makeAll(t, wire) // one end is missing
	// After a node is killed, the kernel returns its card to the host under the name that it had in
	// the node.
	p.do(t, func() error {
		l, err := netlink.LinkByName("w0")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetName(l, "eth1"); err != nil {
			return err
		}
		return netlink.LinkSetNsFd(l, int(here.Fd()))
	})
	// Root in the node has changed its address, and has given it the alias of another node or of
	// another interface of the host.
	honest, own := link("eth1").Attrs().Alias, link("eth1").Attrs().HardwareAddr
	for _, alias := range []string{
		"orrery passthrough prod/7 eth0 up", "orrery lent prod/7 eth0 up",
		strings.Replace(honest, "karoo/101", "prod/7", 1), strings.Replace(honest, " w0 ", " eth0 ", 1), honest + "x",
		passthrough.AliasPrefix, passthrough.AliasPrefix + "a b c d e", passthrough.FormerAliasPrefix,
		passthrough.FormerAliasPrefix + "a b c d e",
	} {
		must(t, netlink.LinkSetAlias(link("eth1"), alias))
		must(t, RestorePassthrough(ctx, spec.NIC{Parent: "eth0"}, "prod/7"))
		must(t, RestorePassthrough(ctx, spec.NIC{Parent: "w0"}, "prod/7"))
		must(t, RestorePassthrough(ctx, spec.NIC{Parent: "eth0"}, "karoo/101"))
		must(t, RestorePassthrough(ctx, spec.NIC{Parent: "w0"}, "karoo/101"))
		if got := link("eth1"); passthrough.Alias(got) != "" || got.Attrs().Alias != alias {
			t.Errorf("%q is believed", alias)
		}
	}
	// Made by a former version of Orrery.
	must(t, netlink.LinkSetAlias(link("eth1"),
		strings.Replace(honest, passthrough.AliasPrefix, passthrough.FormerAliasPrefix, 1)))
	must(t, netlink.LinkSetHardwareAddr(link("eth1"), net.HardwareAddr{2, 0, 0, 0, 0, 9}))
	must(t, RestorePassthrough(ctx, spec.NIC{Parent: "w0"}, "karoo/101"))
	if got := link("w0").Attrs().HardwareAddr; !slices.Equal(got, own) {
		t.Errorf("it has the hardware address %s, not %s", got, own)
	}
	if w0 := link("w0"); w0.Attrs().Alias != kind.VethPairAlias(wire) || !ends.IsUp(w0) || !kind.IsVethEnd(w0) {
		t.Errorf("%+v", w0.Attrs())
	}
	must(t, RestorePassthrough(ctx, spec.NIC{Parent: "w0"}, "karoo/101"))
	must(t, PreparePassthrough(ctx, spec.NIC{Parent: "w0"}, "karoo/101")) // the node has ended on its own
	must(t, PreparePassthrough(ctx, spec.NIC{Parent: "w0"}, "karoo/102"))
	must(t, RestorePassthrough(ctx, spec.NIC{Parent: "w0"}, "karoo/102"))
	if alias := link("w0").Attrs().Alias; alias != kind.VethPairAlias(wire) {
		t.Error(alias)
	}

	refused := func(name, why string) {
		t.Helper()
		before := link(name).Attrs().Alias
		if err := PreparePassthrough(ctx, spec.NIC{Parent: name}, "karoo/101"); err == nil ||
			!strings.Contains(err.Error(), why) ||
			problem.ExitCode(err) != int(problem.Unable) {
			t.Errorf("%s: %v", name, err)
		}
		if link(name).Attrs().Alias != before {
			t.Errorf("%s has been changed", name)
		}
	}
	refused("lo", "not a network card")
	refused(cam.Bridge, "not a network card")
	must(t, setAddress(link("w0"), "192.0.2.7/24"))
	refused("w0", "it has the host's address 192.0.2.7/24")
	must(t, setAddress(link("w0"), ""))
	must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: link("w0").Attrs().Index, Scope: netlink.SCOPE_LINK,
		Dst: allIPv4()}))
	refused("w0", "the host's route to")
	must(t, netlink.RouteDel(&netlink.Route{LinkIndex: link("w0").Attrs().Index, Scope: netlink.SCOPE_LINK,
		Dst: allIPv4()}))
	must(t, netlink.LinkSetMaster(link("w0"), link(cam.Bridge)))
	refused("w0", "is part of "+cam.Bridge)
	must(t, netlink.LinkSetNoMaster(link("w0")))
	mac := macvlanOn("w0")
	makeAll(t, mac)
	refused("w0", mac.Bridge+" is attached to it")
	removeAll(t, mac, wire, cam)
	nothingLeft(t)
}

// wantRefused checks that a network is not made, and that what is there stays as it is.
func wantRefused(t *testing.T, n spec.Network, why string) {
	t.Helper()
	before := linkNames(t)
	err := Make(context.Background(), n, noNodes)
	if err == nil || !strings.Contains(err.Error(), why) || problem.ExitCode(err) != int(problem.Unable) {
		t.Errorf("%s: %v", n.Name, err)
	}
	if after := linkNames(t); !slices.Equal(before, after) {
		t.Errorf("there is %q, not %q", after, before)
	}
}

func linkNames(t *testing.T) []string {
	t.Helper()
	links, err := netlink.LinkList()
	must(t, err)
	var all []string
	for _, l := range links {
		all = append(all, l.Attrs().Name)
	}
	slices.Sort(all)
	return all
}
