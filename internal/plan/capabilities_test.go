package plan_test

import (
	"slices"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
)

// TestCapabilities: a plan contains nothing that an engine cannot do to a running node. The node is
// stopped and started or recreated instead, and the plan gives the reason.
func TestCapabilities(t *testing.T) {
	limited := func(s *site.Site) { s.Nodes[1].Limits = site.Limits{Memory: 1 << 30} }
	image := func(s *site.Site) { s.Roles[1].Apt = []string{"python3", "vim"} }
	const (
		still = "memory changed; the engine fake can limit only stopped nodes"
		gone  = "role layer changed: receptor: apt changed; the engine fake cannot undo a replacement"
	)
	for _, c := range []struct {
		name string
		can  observe.Capabilities
		edit func(*site.Site)
		down bool // the node does not run
		want []string
	}{
		{"limits", observe.Capabilities{}, limited, false, []string{
			"node receptor1: stop: " + still, "node receptor1: update: " + still, "node receptor1: start: after the change",
			"node receptor1: check: check health",
		}},
		{"limits of a stopped node", observe.Capabilities{}, limited, true, []string{
			"node receptor1: update: memory changed", "node receptor1: start: after the change",
			"node receptor1: check: check health",
		}},
		{"live limits", observe.Capabilities{LiveLimits: true}, limited, false,
			[]string{"node receptor1: update: memory changed", "node receptor1: check: check health"}},
		{"autostart", observe.Capabilities{}, func(s *site.Site) { s.Nodes[1].Autostart = false }, false, []string{
			"node receptor1: update: autostart changed", "node receptor1: check: check health",
		}},
		{"replace", observe.Capabilities{}, image, false, []string{
			"node receptor1: destroy: " + gone, "node receptor1: create: new", "node receptor1: start: new",
			"node receptor1: configure: apply roles", "node receptor1: check: check health",
		}},
		{"replace and keep", observe.Capabilities{Keep: true}, image, false,
			replacement("receptor1", "role layer changed: receptor: apt changed", true)},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet("sv1")
			alone := func() *site.Site {
				s := observatory()
				s.Nodes = s.Nodes[:2] // the second of them is changed
				s.Roles[3].NeedsHealthy = nil
				return s
			}
			f.reach(t, alone())
			f.hosts[0].Can = c.can
			s := alone()
			if c.down {
				f.run(plan.Stop(s, f.observe(), plan.Goal{Nodes: map[string]bool{"receptor1": true}}), 1)
			}
			c.edit(s)
			p := f.up(t, s, plan.Goal{})
			wantOrder(t, p, s)
			rest := &plan.Plan{Steps: slices.DeleteFunc(slices.Clone(p.Steps),
				func(s *plan.Step) bool { return s.Kind == plan.BuildLayer })}
			wantLines(t, rest, c.want...)
			f.reach(t, s)
			f.wantReached(t, s)
		})
	}
}

// TestDriftedNetwork: if a network has drifted in a way that no field of its spec shows, it is made
// again, with the drift as the reason.
func TestDriftedNetwork(t *testing.T) {
	f := newFleet("sv1")
	f.reach(t, observatory())
	hosts := f.observe()
	hosts[0].Networks[0].Drift = []observe.NetworkDrift{observe.LinkDown, observe.RulesChanged}
	s := observatory()
	p, err := plan.Up(s, hosts, plan.Goal{})
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, p, "network cam: network: its link is down, rules changed")
	if old := p.Steps[0].OldNetwork; old == nil || *old != hosts[0].Networks[0].Network {
		t.Errorf("it was %+v", old)
	}
}
