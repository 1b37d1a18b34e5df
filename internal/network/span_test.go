package network

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

func onMany() spec.Network {
	return spec.Network{
		Site: "toykat", Name: "lan", Bridge: site.BridgeName("toykat", "lan"), Subnet: "10.99.1.0/24",
		Gateway: "10.99.1.1/24", NAT: true, MTU: 1450,
		VXLAN: spec.VXLAN{ID: 4711, Local: "10.8.1.1", Peers: "10.8.1.2 02:00:00:00:00:02 02:00:00:00:00:03;10.8.1.3"},
	}
}

// theOne returns the only network of the site.
func theOne(t *testing.T) observe.Network {
	t.Helper()
	all, err := Observe("toykat")
	must(t, err)
	if len(all) != 1 {
		t.Fatalf("there are %+v", all)
	}
	return all[0]
}

// TestJoined: the connection of a network to other hosts is made as specified, changed while it
// exists, observed with changes by others, and removed without a trace.
func TestJoined(t *testing.T) {
	if !sandbox(t) {
		return
	}
	ctx, n := context.Background(), onMany()
	made := func(what string) netlink.Link {
		t.Helper()
		must(t, Make(ctx, n, noNodes))
		if got := theOne(t); !got.Matches(&n) {
			t.Errorf("%s: %+v, not %+v", what, got, n)
		}
		link, err := netlink.LinkByName(site.VXLANName(n.Site, n.Name))
		must(t, err)
		return link
	}
	first := made("new").Attrs().Index
	n.VXLAN.Peers = "10.8.1.3 02:00:00:00:00:02;10.8.1.4 02:00:00:00:00:04"
	if made("other nodes").Attrs().Index != first {
		t.Error("the device is made anew for other nodes")
	}
	n.VXLAN.Peers = "10.8.1.4"
	made("a host without nodes")
	n.VXLAN.Local = "10.8.1.7"
	made("another address")
	n.VXLAN.ID, n.MTU = 4712, 1350
	made("another number")
	n.VXLAN = spec.VXLAN{ID: 4712, Local: "2001:db8::1", Peers: "2001:db8::2 02:00:00:00:00:02"}
	made("IPv6")
	n.VXLAN = onMany().VXLAN
	device := made("as at first").Attrs().Name

	for what, c := range map[string]struct {
		do   string
		want []observe.NetworkDrift
	}{
		"learning": {"ip link set " + device + " type vxlan learning",
			[]observe.NetworkDrift{observe.InterconnectChanged}},
		"down":        {"ip link set " + device + " down", []observe.NetworkDrift{observe.InterconnectChanged}},
		"unplugged":   {"ip link set " + device + " nomaster", []observe.NetworkDrift{observe.InterconnectChanged}},
		"its MTU":     {"ip link set " + device + " mtu 1300", []observe.NetworkDrift{observe.InterconnectChanged}},
		"a wall":      {"nft delete table bridge orrery." + device, []observe.NetworkDrift{observe.FiltersChanged}},
		"a rule":      {"nft flush chain inet " + tableName(n.Site) + " input", []observe.NetworkDrift{observe.RulesChanged}},
		"a node":      {"bridge fdb del 02:00:00:00:00:02 dev " + device, nil},
		"a host":      {"bridge fdb del 00:00:00:00:00:00 dev " + device + " dst 10.8.1.3", nil},
		"a stranger":  {"bridge fdb append 00:00:00:00:00:00 dev " + device + " dst 10.8.1.99", nil},
		"the device":  {"ip link del " + device, []observe.NetworkDrift{observe.FiltersChanged, observe.RulesChanged}},
		"flooding it": {"bridge fdb del 00:00:00:00:00:00 dev " + device + " dst 10.8.1.2", nil},
	} {
		if out, err := exec.Command("sh", "-c", c.do).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", what, err, out)
		}
		got := theOne(t)
		if c.want != nil && !slices.Equal(got.Drift, c.want) || c.want == nil && got.VXLAN == n.VXLAN {
			t.Errorf("%s: %+v is seen", what, got)
		}
		made(what)
	}

	// On this host only, again.
	n.VXLAN = spec.VXLAN{}
	must(t, Make(ctx, n, noNodes))
	if got := theOne(t); !got.Matches(&n) {
		t.Errorf("%+v is left", got)
	}
	n.VXLAN = onMany().VXLAN
	must(t, Make(ctx, n, noNodes))
	must(t, Remove(ctx, n))
	for _, left := range []string{"ip -br link show type vxlan", "ip -br link show type bridge", "nft list tables"} {
		if out, err := exec.Command("sh", "-c", left).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %s %v", left, out, err)
		}
	}
}

// TestJoinedRefused: objects that are not Orrery's are left alone, and the reason why a network
// cannot be joined is reported.
func TestJoinedRefused(t *testing.T) {
	if !sandbox(t) {
		return
	}
	ctx, n := context.Background(), onMany()
	refused := func(why string) {
		t.Helper()
		if err := Make(ctx, n, noNodes); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("it is refused with %v, not %q", err, why)
		}
	}
	run := func(script string) {
		t.Helper()
		if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", script, err, out)
		}
	}
	run("ip link add theirs type vxlan id 4711 dstport 4789 nolearning")
	refused("4711 is already used by theirs")
	run("ip link del theirs; ip link add " + site.VXLANName(n.Site, n.Name) + " type vxlan id 4712 dstport 4789")
	refused("that is not Orrery's")
	must(t, Remove(ctx, n))
	run("ip link del " + site.VXLANName(n.Site, n.Name)) // it was left alone

	// A run that was killed before it could mark the device has still made it.
	must(t, Make(ctx, n, noNodes))
	run("ip link set " + site.VXLANName(n.Site, n.Name) + " alias ''")
	must(t, Make(ctx, n, noNodes))
	if got := theOne(t); !got.Matches(&n) {
		t.Errorf("%+v is seen", got)
	}
	other := onMany()
	other.Name, other.Bridge, other.Subnet, other.Gateway = "other", site.BridgeName("toykat", "other"), "10.99.2.0/24",
		"10.99.2.1/24"
	n = other
	refused("orrery vxlan toykat lan")
}

// TestJoinedHostile: a forged step is checked before anything is changed.
//
// Promise (Networks): What a step says of other hosts is checked before anything is changed.
func TestJoinedHostile(t *testing.T) {
	for what, v := range map[string]spec.VXLAN{
		"no number":        {Local: "10.8.1.1", Peers: "10.8.1.2"},
		"too large":        {ID: 1 << 24, Local: "10.8.1.1", Peers: "10.8.1.2"},
		"no address":       {ID: 1, Peers: "10.8.1.2"},
		"IPv6 beside IPv4": {ID: 1, Local: "10.8.1.1", Peers: "2001:db8::1"},
		"multicast":        {ID: 1, Local: "10.8.1.1", Peers: "239.1.1.1"},
		"loopback":         {ID: 1, Local: "10.8.1.1", Peers: "127.0.0.1"},
		"a zone":           {ID: 1, Local: "2001:db8::1", Peers: "2001:db8::2%eth0"},
		"no MAC":           {ID: 1, Local: "10.8.1.1", Peers: "10.8.1.2 nobody"},
		"MAC of all":       {ID: 1, Local: "10.8.1.1", Peers: "10.8.1.2 ff:ff:ff:ff:ff:ff"},
		"long MAC":         {ID: 1, Local: "10.8.1.1", Peers: "10.8.1.2 02:00:00:00:00:00:00:01"},
	} {
		n := onMany()
		n.VXLAN = v
		if check(n) == nil {
			t.Errorf("%s: it is taken", what)
		}
	}
	n := onMany()
	if n.Kind = site.Routed; check(n) == nil {
		t.Error("a routed network is joined")
	}
	if err := check(onMany()); err != nil {
		t.Error(err)
	}
}
