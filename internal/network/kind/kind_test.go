package kind

import (
	"testing"

	"github.com/vishvananda/netlink"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestKindsMatch: each kind of a site file has an implementation here, which requires of a network
// what the site's description says.
func TestKindsMatch(t *testing.T) {
	if len(Kinds) != len(site.NetworkKinds)+1 {
		t.Errorf("%d kinds are made; a site file names %d, and there are veth pairs", len(Kinds), len(site.NetworkKinds))
	}
	for _, k := range append(site.NetworkKinds, site.NetworkKind{Name: spec.VethPair}) {
		makes, ok := Kinds[k.Name]
		if !ok {
			t.Errorf("%s: it is in no list here", k.Name)
			continue
		}
		name := k.Name
		if name == site.Bridge {
			name = ""
		}
		n := spec.Network{Name: "lan", Kind: name, Parent: "w0", Gateway: "10.0.0.1/24", Ends: [2]string{"w0", "w1"}}
		if err := makes.Check(n); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		n.Parent = ""
		if err := makes.Check(n); (err != nil) != (k.OnInterface || k.VirtualFunctions) {
			t.Errorf("%s: on no interface: %v", k.Name, err)
		}
		n.Parent, n.Gateway = "w0", ""
		if err := makes.Check(n); (err != nil) != k.Routed {
			t.Errorf("%s: without a gateway: %v", k.Name, err)
		}
		if link := makes.NewLink(n, netlink.NewLinkAttrs()); link.Type() != makes.LinkType() || !IsLinkType(link.Type()) {
			t.Errorf("%s: its link is a %s, and not a %s", k.Name, link.Type(), makes.LinkType())
		}
		if makes.HasNodes() != (k.Name != spec.VethPair) {
			t.Errorf("%s: %v", k.Name, makes.HasNodes())
		}
	}
	for _, name := range []string{"tunnel", site.Bridge} { // a bridge is never recorded by name
		if err := Of(name).Check(spec.Network{Kind: name}); err == nil {
			t.Errorf("a network of the kind %q can be made", name)
		}
	}
	if IsLinkType("dummy") {
		t.Error("a dummy is taken for the link of a network")
	}
}
