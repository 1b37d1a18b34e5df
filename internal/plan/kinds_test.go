package plan_test

import (
	"net/netip"
	"strings"
	"testing"

	"orrery/internal/plan"
	"orrery/internal/site"
)

// wired returns a site with two veth pairs: one end of the first carries a macvlan network, and
// nodes take both ends of the second.
func wired() *site.Site {
	network := func(name, kind, subnet string) site.Network {
		return site.Network{Name: name, Kind: kind, Subnet: netip.MustParsePrefix(subnet), MTU: 1500}
	}
	s := &site.Site{
		Name: "rapid", Images: []site.Image{{Name: "debian", Suite: "bookworm"}}, Hosts: []site.Host{{Name: "sv1"}},
		Networks:  []site.Network{network("mac", site.Macvlan, "10.0.0.0/24"), network("nic", site.Exclusive, "10.0.1.0/24")},
		VethPairs: []site.VethPair{{Name: "one", Ends: [2]string{"w0", "w1"}}, {Name: "two", Ends: [2]string{"x0", "x1"}}},
	}
	s.Networks[0].Interface = "w0"
	for i, end := range []string{"x0", "x1"} {
		s.Nodes = append(s.Nodes, site.Node{
			Name: []string{"a", "b"}[i], ID: 100 + i, Image: "debian", Engine: "fake", Host: "sv1", Autostart: true,
			NICs: []site.NIC{
				{Network: "mac", Address: site.AddressAfter(s.Networks[0].Subnet.Addr(), 10+i)},
				{Network: "nic", Address: site.AddressAfter(s.Networks[1].Subnet.Addr(), 10+i), Interface: end},
			},
		})
	}
	return s
}

func TestVethPairsComeFirstAndGoLast(t *testing.T) {
	f := newFleet("sv1")
	p := f.reach(t, wired())
	before := func(p *plan.Plan, first, then string) {
		t.Helper()
		at := func(line string) int {
			for _, s := range p.Steps {
				if strings.HasPrefix(s.String(), line) {
					return s.N
				}
			}
			t.Fatalf("no %s in\n%s", line, text(p))
			return 0
		}
		if at(first) >= at(then) {
			t.Errorf("%s is not before %s in\n%s", first, then, text(p))
		}
	}
	before(p, "network vethpair.one: network", "network mac: network")
	before(p, "network vethpair.two: network", "node a: start")
	if again := f.up(t, wired(), plan.Goal{}); !again.Empty() { // although neither end of veth pair two is visible
		t.Errorf("the second plan is not empty:\n%s", text(again))
	}
	down := plan.Down(wired(), f.observe(), plan.Goal{})
	before(down, "network mac: remove", "network vethpair.one: remove")
	before(down, "node a: destroy", "network vethpair.two: remove")
}

func TestAnotherKindIsMadeAnew(t *testing.T) {
	f := newFleet("sv1")
	f.reach(t, wired())
	s := wired()
	s.Networks[0].Kind, s.Networks[0].Interface = "", ""
	_, err := plan.Up(s, f.observe(), plan.Goal{Nodes: map[string]bool{"a": true}})
	if err == nil || !strings.Contains(err.Error(), "cannot be recreated while node b uses it") {
		t.Error(err)
	}
	p := f.reach(t, s)
	if c := p.Counts(); c[plan.StopNode] != 2 || c[plan.StartNode] != 2 || c[plan.MakeNetwork] != 1 ||
		c[plan.RemoveNetwork] != 2 {
		t.Errorf("the plan is\n%s", text(p))
	}
	f.wantReached(t, s)
}

func TestInterfacePassesFromNodeToNode(t *testing.T) {
	f := newFleet("sv1")
	f.reach(t, wired())
	s := wired()
	for i := range s.Nodes { // they exchange their ends
		nic := &s.Nodes[i].NICs[1]
		nic.Interface = s.VethPairs[1].Ends[1-i]
	}
	f.reach(t, s)
	f.wantReached(t, s)
}
