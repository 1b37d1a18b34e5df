package plan_test

import (
	"net/netip"
	"slices"
	"testing"

	"orrery/internal/plan"
	"orrery/internal/site"
)

// onData puts a node of the observatory on an additional network, which exists if any node is on
// it.
func onData(s *site.Site, node int, name string) {
	s.Networks = append(s.Networks, site.Network{Name: name, Subnet: netip.MustParsePrefix("10.2.0.0/24")})
	n := &s.Nodes[node]
	n.NICs = append(n.NICs, site.NIC{Network: name, Address: netip.AddrFrom4([4]byte{10, 2, 0, byte(n.ID)})})
}

// TestRewire: a network is added to a running machine after it was made, and removed from it before
// it is removed, without a restart. Additions to the same place come after removals, so a network
// can be renamed.
func TestRewire(t *testing.T) {
	f := newFleet("sv1")
	f.hosts[0].Can.PlugNIC = true
	f.reach(t, observatory())
	check := "node portal: check: check health"
	for _, c := range []struct {
		name string
		edit func(*site.Site)
		want []string
	}{
		{"comes", func(s *site.Site) { onData(s, 3, "data") },
			[]string{"network data: network: new", "node portal: update: plugs network data", check}},
		{"is called otherwise", func(s *site.Site) { onData(s, 3, "fast") }, []string{
			"node portal: update: unplugs network data", "network data: remove: no longer declared",
			"network fast: network: new", "node portal: update: plugs network fast", check,
		}},
		{"goes", func(*site.Site) {}, []string{"node portal: update: unplugs network fast",
			"network fast: remove: no longer declared", check}},
		{"comes, with limits", func(s *site.Site) { onData(s, 3, "data"); s.Nodes[3].Limits.Memory = 1 << 30 }, []string{
			"network data: network: new", "node portal: update: memory changed, plugs network data", check,
		}},
	} {
		s := observatory()
		c.edit(s)
		p := f.up(t, s, plan.Goal{})
		if t.Run(c.name, func(t *testing.T) { wantOrder(t, p, s); wantSteps(t, named(p), c.want...) }); t.Failed() {
			return
		}
		f.reach(t, s)
		f.wantReached(t, s)
	}
}

// wantSteps compares steps in any order that wantOrder has found right.
func wantSteps(t *testing.T, steps []*plan.Step, want ...string) {
	t.Helper()
	left := map[string]int{}
	for _, s := range steps {
		left[s.String()]++
	}
	for _, line := range want {
		left[line]--
	}
	for line, n := range left {
		if n != 0 {
			t.Errorf("%+d: %s", n, line)
		}
	}
}

// TestRewireOrder: steps wait for one another as networks and addresses require.
func TestRewireOrder(t *testing.T) {
	f := newFleet("sv1")
	f.hosts[0].Can.PlugNIC = true
	with := observatory()
	onData(with, 3, "data")
	f.reach(t, with)
	s := observatory()
	onData(s, 3, "fast") // the same subnet
	var unplugs, removes, makes, plugs int
	p := f.up(t, s, plan.Goal{})
	for i, step := range p.Steps {
		switch step.Kind {
		case plan.RemoveNetwork:
			removes = i
		case plan.MakeNetwork:
			makes = i
		case plan.LimitNode:
			if len(step.Node.NICs) == 1 {
				unplugs = i
			} else {
				plugs = i
			}
		}
	}
	if unplugs >= removes || removes >= makes || makes >= plugs {
		t.Errorf("%d, %d, %d, %d of\n%s", unplugs, removes, makes, plugs, text(p))
	}
	if beforePlug, afterUnplug := p.Steps[plugs].Old, p.Steps[unplugs].Node; len(beforePlug.NICs) != 1 ||
		len(afterUnplug.NICs) != 1 {
		t.Errorf("between, it is %+v and %+v", beforePlug.NICs, afterUnplug.NICs)
	}
}

// TestNoRewire: changes that a running machine does not support stop it. An interface in doubt is
// removed, and added again if it is declared.
func TestNoRewire(t *testing.T) {
	f := newFleet("sv1")
	s := observatory()
	virtual(&s.Nodes[3])
	onData(s, 3, "data")
	f.reach(t, s)
	up := func(doubt ...string) *plan.Plan {
		t.Helper()
		hosts := f.observe()
		can := hosts[0].Engines[site.KVM]
		can.PlugNIC = true
		hosts[0].Engines[site.KVM] = can
		for i := range hosts[0].Nodes {
			if hosts[0].Nodes[i].Name == "portal" {
				hosts[0].Nodes[i].Doubt = doubt
			}
		}
		p, err := plan.Up(s, hosts, plan.Goal{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := up(); !p.Empty() {
		t.Errorf("%s", text(p))
	}
	check := "node portal: check: check health"
	wantLines(t, up("data"), "node portal: update: unplugs network data", "node portal: update: plugs network data", check)
	nics := s.Nodes[3].NICs
	restart := func(why string) []string {
		return []string{"node portal: stop: " + why, "node portal: update: " + why, "node portal: start: after the change",
			check}
	}
	s.Nodes[3].NICs = []site.NIC{nics[1], nics[0]} // their names change
	wantSteps(t, named(up()), restart("network interfaces changed")...)
	s.Nodes[3].NICs = nics[:1]
	s.Nodes[3].VM.CPU = "max"
	wantSteps(t, named(up()), append(restart("virtual hardware changed"),
		"network data: remove: no node of this host uses it any more")...)
}

// named returns the steps of a plan, without those for names and those that follow from them.
func named(p *plan.Plan) (all []*plan.Step) {
	for _, s := range p.Steps {
		if s.Kind != plan.WriteNames {
			all = append(all, s)
		}
	}
	return all
}

// TestRewireTaken: another node can have a host interface after a running machine has released it,
// and not before.
func TestRewireTaken(t *testing.T) {
	f := newFleet("sv1")
	f.hosts[0].Can.PlugNIC = true
	declared := wired()
	f.reach(t, declared)
	declared.Nodes[1].NICs = declared.Nodes[1].NICs[:1]
	declared.Nodes[0].NICs[1].Interface = "x1"
	p := f.up(t, declared, plan.Goal{})
	gives, takes := 0, 0
	for _, s := range p.Steps {
		switch {
		case s.Subject == "b" && s.Kind == plan.LimitNode:
			gives = s.N
		case s.Subject == "a" && (s.Kind == plan.LimitNode && len(s.Node.NICs) == 2 || s.Kind == plan.StartNode):
			takes = s.N
			if !slices.Contains(s.Needs, gives) {
				t.Errorf("%s does not wait for what lets go", s)
			}
		}
	}
	if gives == 0 || takes == 0 {
		t.Errorf("%d, %d of\n%s", gives, takes, text(p))
	}
}
