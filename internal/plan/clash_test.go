package plan_test

import (
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestNetworkRefused: the plan reports what prevents a network, with the host and the colliding
// object.
func TestNetworkRefused(t *testing.T) {
	other := spec.Network{Site: "former", Name: "lan", Bridge: "orbformer", Subnet: "10.1.0.0/16", Gateway: "10.1.0.1/16"}
	isolated := other
	isolated.Router = true
	wanted := spec.NewBuilder(observatory()).Networks()[0]
	onCard := observatory()
	onCard.Networks[0].Kind, onCard.Networks[0].Interface, onCard.Networks[0].NAT = site.Macvlan, "enp9", false
	macvlan := spec.Network{Site: "former", Name: "lan", Bridge: "orbformer", Kind: site.Macvlan, Parent: "enp9"}
	for _, c := range []struct {
		site   *site.Site
		around observe.HostNetworking
		want   string // "" if it is not refused
	}{
		{observatory(), observe.HostNetworking{Networks: []spec.Network{other}},
			"overlaps 10.1.0.0/16, network lan of site former"},
		{observatory(), observe.HostNetworking{Networks: []spec.Network{isolated}}, ""},
		{observatory(), observe.HostNetworking{Leads: []observe.ReachableSubnet{{To: "10.1.0.7/24", Link: "eth0"}}},
			"the host's interface eth0"},
		{
			observatory(), observe.HostNetworking{Leads: []observe.ReachableSubnet{{To: "10.0.0.0/8", Link: "tun0",
				Route: true}}},
			"a route of the host through tun0",
		},
		{observatory(), observe.HostNetworking{Leads: []observe.ReachableSubnet{{To: "10.2.0.7/24", Link: "eth0"}}}, ""},
		{observatory(), observe.HostNetworking{Interfaces: []string{"eth0", wanted.Bridge}}, "an interface " + wanted.Bridge},
		{onCard, observe.HostNetworking{Interfaces: []string{"eth0"}}, "no interface enp9"},
		{onCard, observe.HostNetworking{Interfaces: []string{"eth0", "enp9"}}, ""},
		{
			onCard, observe.HostNetworking{Interfaces: []string{"enp9"}, Networks: []spec.Network{macvlan}},
			"is already used by network lan of site former",
		},
	} {
		f := newFleet("sv1")
		f.hosts[0].Around = c.around
		f.hosts[0].SetSite(c.site)
		_, err := plan.Up(c.site, f.observe(), plan.Goal{})
		if c.want == "" && err != nil {
			t.Errorf("%+v: %v", c.around, err)
		}
		if c.want == "" {
			continue
		}
		if problem.ExitCode(err) != int(problem.Unable) || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "host sv1") {
			t.Errorf("%+v: %v, which does not say %q", c.around, err, c.want)
		}
	}
}

// TestEndRefused: an interface with the name of a veth pair's end is refused, but not the end of an
// existing pair, whatever a node has made of it.
func TestEndRefused(t *testing.T) {
	s := observatory()
	s.VethPairs = []site.VethPair{{Name: "wire", Ends: [2]string{"w0", "w1"}}}
	s.Networks[0].Kind, s.Networks[0].Interface, s.Networks[0].NAT = site.Macvlan, "w0", false
	f := newFleet("sv1")
	h := f.hosts[0]
	h.SetSite(s)
	h.Around = observe.HostNetworking{Interfaces: []string{"eth0", "w1"}}
	if _, err := plan.Up(s, f.observe(), plan.Goal{}); problem.ExitCode(err) != int(problem.Unable) ||
		!strings.Contains(err.Error(), "interface w1") {
		t.Errorf("an interface of the host: %v", err)
	}
	h.Around = observe.HostNetworking{}
	f.reach(t, s)
	h.Around = observe.HostNetworking{Interfaces: []string{"eth0", "w1"}}
	seen := f.observe()
	for i := range seen[0].Networks {
		seen[0].Networks[i].AddDrift(observe.EndForeign)
	}
	p, err := plan.Up(s, seen, plan.Goal{})
	if err != nil || len(p.Steps) == 0 {
		t.Errorf("an end that the site has made: %v", err)
	}
}
