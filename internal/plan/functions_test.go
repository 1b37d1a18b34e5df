package plan_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/observe/sriov"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// pooled returns a site with nodes on a network of virtual functions.
func pooled(interfaces string, nodes ...string) *site.Site {
	s := &site.Site{
		Name: "rapid", Images: []site.Image{{Name: "debian", Suite: "bookworm"}}, Hosts: []site.Host{{Name: "sv1"}},
		Networks: []site.Network{{Name: "fast", Kind: "sriov", Subnet: netip.MustParsePrefix("10.0.0.0/24"), MTU: 1500,
			Interface: interfaces, VLAN: 100, Place: "site.toml:5"}},
	}
	for i, name := range nodes {
		s.Nodes = append(s.Nodes, site.Node{Name: name, ID: 100 + i, Image: "debian", Engine: "fake", Host: "sv1",
			Autostart: true,
			NICs:      []site.NIC{{Network: "fast", Address: site.AddressAfter(s.Networks[0].Subnet.Addr(), 10+int(name[0]))}}})
	}
	return s
}

func cardsOf(total int) []sriov.Card {
	return []sriov.Card{{Address: "0000:04:00.0", Interfaces: []string{"p0"}, Driver: "igb", Total: total},
		{Address: "0000:04:00.1", Interfaces: []string{"p1"}, Driver: "igb", Total: total}}
}

// functions returns the virtual functions of a host's nodes.
func functions(h observe.Host) string {
	var words []string
	for _, n := range h.Nodes {
		words = append(words, n.Name+"="+n.NICs[0].Parent)
	}
	return strings.Join(words, " ")
}

// TestVirtualFunctions: nodes get functions of their own, keep them when the site and its pool change,
// and pass them on when they go.
func TestVirtualFunctions(t *testing.T) {
	f := newFleet("sv1")
	f.hosts[0].Cards = cardsOf(2)
	f.reach(t, pooled("p0", "a", "b"))
	want := "a=0000:04:00.0v0 b=0000:04:00.0v1"
	if got := functions(f.observe()[0]); got != want {
		t.Fatal(got)
	}
	for _, nic := range f.observe()[0].Nodes[0].NICs {
		if nic.VLAN != 100 || !strings.HasPrefix(nic.TakenName(), "orf") || len(nic.TakenName()) != 13 {
			t.Errorf("%+v", nic)
		}
	}
	if again := f.up(t, pooled("p0", "a", "b"), plan.Goal{}); !again.Empty() {
		t.Errorf("the second plan is not empty:\n%s", text(again))
	}
	s := pooled("p1,p0", "c", "a", "b") // other ids, and a card that is new and comes first
	s.Nodes[0].ID, s.Nodes[1].ID, s.Nodes[2].ID = 102, 100, 101
	p := f.reach(t, s)
	if c := p.Counts(); c[plan.StopNode]+c[plan.RemoveNetwork] > 0 || c[plan.MakeNetwork] != 1 {
		t.Errorf("a larger pool disturbs nodes:\n%s", text(p))
	}
	if got := functions(f.observe()[0]); got != want+" c=0000:04:00.1v0" {
		t.Error(got)
	}
	f.reach(t, pooled("p0", "a", "d")) // b goes, and so does the card of c
	if got := functions(f.observe()[0]); got != "a=0000:04:00.0v0 d=0000:04:00.0v1" {
		t.Error(got)
	}
	s = pooled("p0", "a", "d")
	s.Networks[0].VLAN = 200
	f.reach(t, s)
	if again := f.up(t, s, plan.Goal{}); !again.Empty() {
		t.Errorf("the second plan is not empty:\n%s", text(again))
	}
}

// TestTooFewFunctions: a plan says how many functions there are, who has them, and what helps.
func TestTooFewFunctions(t *testing.T) {
	for name, c := range map[string]struct {
		cards  []sriov.Card
		around []string
		want   []string
	}{
		"too few": {cardsOf(2), nil, []string{"site.toml:5", "host sv1", "3 nodes", "which has 2", "none is left for c",
			"put some of the nodes on another host"}},
		"none": {cardsOf(0), nil, []string{"site.toml:5", "can have no virtual functions", "needed by a, b, c", "firmware"}},
		"in use": {[]sriov.Card{{Address: "0000:04:00.0", Interfaces: []string{"p0"}, Total: 7, Current: 3,
			Used: []sriov.Use{{Index: 0, Other: "p0v0 is up"}, {Index: 1, Holder: "toy/1"}}}}, nil,
			[]string{"which has 3", "0000:04:00.0v0 (p0v0 is up)", "node toy/1", "could have 7", "stop what uses them"}},
		"no such interface": {nil, []string{"eth0"}, []string{"site.toml:5", "host sv1 has no interface p0"}},
		"no card":           {nil, []string{"p0"}, []string{"has no virtual functions", "firmware"}},
	} {
		f := newFleet("sv1")
		f.hosts[0].Cards, f.hosts[0].Around.Interfaces = c.cards, c.around
		_, err := plan.Up(pooled("p0", "a", "b", "c"), f.observe(), plan.Goal{})
		if problem.ExitCode(err) != int(problem.Unable) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%s: no %q in %v", name, want, err)
			}
		}
	}
}

// TestPlacedByFunctions: nodes that no host is declared for go where functions are left.
func TestPlacedByFunctions(t *testing.T) {
	f := newFleet("sv1", "sv2", "sv3")
	f.hosts[0].Cards, f.hosts[1].Cards, f.hosts[2].Cards = nil, cardsOf(1)[:1], cardsOf(2)[:1]
	s := pooled("p0", "a", "b", "c")
	s.Hosts = []site.Host{{Name: "sv1", Address: "local"}, {Name: "sv2", Address: "sv2"}, {Name: "sv3", Address: "sv3"}}
	for i := range s.Nodes {
		s.Nodes[i].Host = ""
	}
	f.reach(t, s)
	var placed []string
	for _, h := range f.observe() {
		placed = append(placed, fmt.Sprint(len(h.Nodes)))
	}
	if got := strings.Join(placed, " "); got != "0 1 2" {
		t.Error(got)
	}
	s.Nodes = append(s.Nodes, s.Nodes[0])
	s.Nodes[3].Name, s.Nodes[3].ID, s.Nodes[3].NICs = "d", 110, []site.NIC{{Network: "fast",
		Address: site.AddressAfter(s.Networks[0].Subnet.Addr(), 9)}}
	if _, err := plan.Up(s, f.observe(), plan.Goal{}); err == nil || !strings.Contains(err.Error(), "site.toml:5") {
		t.Error(err)
	}
}
