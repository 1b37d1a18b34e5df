package twin_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"orrery/internal/site"
	"orrery/internal/site/service"
	"orrery/internal/site/twin"
)

// TestServices: a twin has its own services, with the nodes that it has. A simulator can hold the address of the
// node that it replaces, and a collapsed twin all addresses.
func TestServices(t *testing.T) {
	address := netip.MustParseAddr("10.1.0.5")
	node := func(name, last, simulator string) site.Node {
		return site.Node{Name: name, Roles: []string{"web"}, SimulatedBy: simulator,
			NICs: []site.NIC{{Network: "cam", Address: netip.MustParseAddr("10.1.0." + last)}}}
	}
	s := &site.Site{Name: "karoo", Networks: []site.Network{{Name: "cam", Subnet: netip.MustParsePrefix("10.1.0.0/24")}},
		Nodes: []site.Node{node("first", "10", ""), node("a", "11", ""), node("b", "12", "sim")},
		Roles: []site.Role{{Name: "web"}, {Name: "sim"}, {Name: service.Role}},
		Services: []service.Service{{Name: "portal", Address: address, Network: "cam", Nodes: []string{"b", "a"},
			Advertise: 200 * time.Millisecond}}}
	s.AddServices()
	for name, c := range map[string]struct {
		o     twin.Options
		nodes []string
		moves map[string]bool // nodes to which the address may move
	}{
		"whole":     {twin.Options{}, []string{"b", "a"}, map[string]bool{"a": true, "b": true}},
		"one":       {twin.Options{Only: []string{"a", "first"}}, []string{"a"}, map[string]bool{"a": true}},
		"none":      {twin.Options{Only: []string{"first"}}, nil, nil},
		"collapsed": {twin.Options{Collapse: true}, []string{"first"}, map[string]bool{"first": true}},
	} {
		c.o.Name = "dev"
		made, err := twin.New(s, c.o)
		if err != nil {
			t.Fatal(err)
		}
		var nodes []string
		if v, ok := made.Service("portal"); ok {
			nodes = v.Nodes
		}
		if !slices.Equal(nodes, c.nodes) {
			t.Errorf("%s: the service has nodes %v", name, nodes)
		}
		for _, n := range made.Nodes {
			if moves := slices.Equal(n.NICs[0].Moving, []netip.Addr{address}); moves != c.moves[n.Name] ||
				moves != slices.Contains(n.Roles, service.Role) {
				t.Errorf("%s: node %s has roles %v, and its addresses are %+v", name, n.Name, n.Roles, n.NICs)
			}
		}
	}
	if got := s.Services[0].Nodes; !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("the original has changed: %v", got)
	}
}

// TestActiveServices: a twin has its own active services, which the nodes that it has answer.
func TestActiveServices(t *testing.T) {
	node := func(name, last, simulator string) site.Node {
		return site.Node{Name: name, Roles: []string{"web"}, SimulatedBy: simulator,
			NICs: []site.NIC{{Network: "cam", Address: netip.MustParseAddr("10.1.0." + last)}}}
	}
	role := service.RoleOf(service.DNS)
	s := &site.Site{Name: "karoo", Networks: []site.Network{{Name: "cam", Subnet: netip.MustParsePrefix("10.1.0.0/24")}},
		Nodes:  []site.Node{node("first", "10", ""), node("a", "11", ""), node("b", "12", "sim")},
		Roles:  []site.Role{{Name: "web"}, {Name: "sim"}, {Name: role}},
		Active: []service.Active{{Name: "names", Kind: service.DNS, Network: "cam", Nodes: []string{"a", "b"}}}}
	s.AddServices()
	for name, c := range map[string]struct {
		o     twin.Options
		nodes []string
	}{
		"whole":     {twin.Options{}, []string{"a", "b"}},
		"one":       {twin.Options{Only: []string{"b", "first"}}, []string{"b"}},
		"none":      {twin.Options{Only: []string{"first"}}, nil},
		"collapsed": {twin.Options{Collapse: true}, nil},
	} {
		c.o.Name = "dev"
		made, err := twin.New(s, c.o)
		if err != nil {
			t.Fatal(err)
		}
		var nodes []string
		for _, a := range made.Active {
			nodes = append(nodes, a.Nodes...)
		}
		if !slices.Equal(nodes, c.nodes) {
			t.Errorf("%s: the service has nodes %v", name, nodes)
		}
		for _, n := range nodes {
			if got, ok := made.Node(n); !ok || !slices.Contains(got.Roles, role) {
				t.Errorf("%s: node %s is %+v", name, n, got)
			}
		}
	}
	if got := s.Active[0].Nodes; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the original has changed: %v", got)
	}
}
