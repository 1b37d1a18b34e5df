package spec

import (
	"net/netip"
	"slices"
	"testing"

	"orrery/internal/site"
)

// TestRewire: interfaces are added and removed while a machine runs, as long as the remaining ones
// do not change. An interface in doubt is removed and added again.
func TestRewire(t *testing.T) {
	on := func(networks ...string) *Node {
		n := &Node{Site: "karoo", Name: "db"}
		for i, network := range networks {
			n.NICs = append(n.NICs, NIC{Name: "eth" + string(rune('0'+i)), Network: network, Bridge: "b-" + network,
				HostIfName: "orv-" + network, Address: netip.MustParsePrefix("10.0.0.2/24")})
		}
		return n
	}
	with := func(n *Node, edit func(*Node)) *Node { edit(n); return n }
	for name, c := range map[string]struct {
		was, is *Node
		doubt   []string
		out, in []string
		live    bool
	}{
		"nothing":     {on("a", "b"), on("a", "b"), nil, nil, nil, true},
		"one more":    {on("a"), on("a", "b"), nil, nil, []string{"b"}, true},
		"one less":    {on("a", "b"), on("a"), nil, []string{"b"}, nil, true},
		"the first":   {on(), on("a"), nil, nil, []string{"a"}, true},
		"the last":    {on("a"), on(), nil, []string{"a"}, nil, true},
		"another":     {on("a", "b"), on("a", "c"), nil, []string{"b"}, []string{"c"}, true},
		"other names": {on("a", "b"), on("b"), nil, nil, nil, false},
		"another bridge": {on("a", "b"), with(on("a"), func(n *Node) { n.NICs[0].Bridge = "live" }), nil, []string{"b"},
			nil, true},
		"another address": {on("a"),
			with(on("a", "b"), func(n *Node) { n.NICs[0].Address = netip.MustParsePrefix("10.0.0.3/24") }), nil, nil, nil,
			false},
		"another gateway": {on("a"), with(on("a", "b"), func(n *Node) { n.NICs[0].Gateway = "10.0.0.1" }), nil, nil, nil,
			false},
		"in doubt, wanted": {on("a", "b"), on("a", "b"), []string{"b"}, []string{"b"}, []string{"b"}, true},
		"in doubt":         {on("a", "b"), on("a"), []string{"b"}, []string{"b"}, nil, true},
		"in doubt, other": {on("a", "b"),
			with(on("a", "b"), func(n *Node) { n.NICs[1].Address = netip.MustParsePrefix("10.0.0.3/24") }), []string{"b"},
			[]string{"b"}, []string{"b"}, true},
		"e1000":            {with(on("a"), func(n *Node) { n.VM.Model = site.E1000 }), on("a", "b"), nil, nil, nil, false},
		"e1000, as it was": {with(on("a"), func(n *Node) { n.VM.Model = site.E1000 }), on("a"), nil, nil, nil, true},
		"disk of others": {with(on("a"), func(n *Node) { n.Disk.Guest = site.CloudInit }), on("a", "b"), nil, nil, nil,
			false},
	} {
		got, live := c.was.NICChange(c.is, c.doubt)
		if live != c.live || live && (!slices.Equal(networks(got.Out), c.out) || !slices.Equal(networks(got.In), c.in)) {
			t.Errorf("%s: %+v, %t", name, got, live)
		}
		for _, nic := range got.In {
			if nic.Bridge == "" {
				t.Errorf("%s: %+v goes to no bridge", name, nic)
			}
		}
	}
	if got := DescribeNetworks("plugs", on("a", "b").NICs); got != "plugs network a, plugs network b" {
		t.Error(got)
	}
	if got := WithoutNICs(on("a", "b", "c").NICs, on("b").NICs); !slices.Equal(networks(got), []string{"a", "c"}) {
		t.Error(got)
	}
}

func networks(nics []NIC) (names []string) {
	for _, nic := range nics {
		names = append(names, nic.Network)
	}
	return names
}
