package plan_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/plan"
	"orrery/internal/plan/place"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A plan for some nodes does not change other nodes, or hosts that have none of them.
func TestSelectionTouchesOnlyTheSelected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, g := begun(t)
		s := g.edited(t).site()
		chosen := map[string]bool{}
		networks, hosts, declared := map[string]bool{}, map[string]bool{}, map[string]int{}
		for _, n := range s.Nodes {
			declared[n.Name] = n.ID
			if rapid.Bool().Draw(t, "chosen") {
				chosen[n.Name] = true
			}
		}
		placed, err := place.Assign(s, f.observe(), slices.Collect(maps.Keys(chosen))...)
		if err != nil {
			t.Fatalf("%v", err)
		}
		for _, n := range placed.Nodes {
			if !chosen[n.Name] {
				continue
			}
			hosts[n.Host] = true
			for _, nic := range n.NICs {
				networks[nic.Network] = true
				ends := []string{nic.Interface}
				if on, ok := s.Network(nic.Network); ok {
					ends = append(ends, on.Interface)
				}
				for _, end := range ends {
					if veth, ok := vethPairOf(s, end); ok {
						networks["vethpair."+veth.Name] = true
					}
				}
			}
		}
		ids := map[int]bool{}
		for name := range chosen {
			ids[declared[name]] = true
		}
		p, err := plan.Up(s, f.observe(), plan.Goal{Nodes: chosen})
		if err != nil { // an unselected node is on a network that would change its kind
			if !strings.Contains(err.Error(), "cannot be recreated while node") {
				t.Fatalf("plan.Up: %v", err)
			}
			return
		}
		wantOrder(t, p, s)
		for _, step := range p.Steps {
			_, known := declared[step.Subject]
			switch {
			case step.ForNode():
				if !chosen[step.Subject] && (known || !ids[step.Old.ID]) {
					t.Fatalf("%s was not asked for", step)
				}
			case step.Kind == plan.MakeNetwork:
				if !networks[step.Subject] {
					t.Fatalf("%s: no chosen node is on it", step)
				}
			case !hosts[step.Host]:
				t.Fatalf("%s: no chosen node is on host %s", step, step.Host)
			}
		}
	})
}

func TestSelectionReaches(t *testing.T) {
	f := newFleet("sv1")
	p := f.up(t, observatory(), plan.Goal{Nodes: map[string]bool{"db": true}})
	if result := f.run(p, 4); !result.OK() {
		t.Fatal(result.Failed)
	}
	if h := f.observe()[0]; len(h.Nodes) != 1 || h.Nodes[0].Name != "db" || !h.Nodes[0].Configured {
		t.Errorf("there is %+v", h.Nodes)
	}
	if p := f.up(t, observatory(), plan.Goal{Nodes: map[string]bool{"db": true}}); !p.Empty() {
		t.Errorf("the second plan is not empty: %q", lines(p))
	}
}

// A node that is selected by name is started even without autostart.
func TestSelectionStartsSleepers(t *testing.T) {
	s := observatory()
	s.Nodes[0].Autostart = false
	f := newFleet("sv1")
	f.reach(t, s)
	if result := f.run(plan.Stop(s, f.observe(), plan.Goal{Nodes: map[string]bool{"db": true}}), 1); !result.OK() {
		t.Fatal(result.Failed)
	}
	wantLines(t, f.up(t, s, plan.Goal{}))
	wantLines(t, f.up(t, s, plan.Goal{Nodes: map[string]bool{"db": true, "portal": true}}),
		"node db: start: not running", "node db: check: check health")
}

// A running node without autostart keeps running after a change.
func TestChangedSleeperRunsAgain(t *testing.T) {
	s := observatory()
	s.Nodes[0].Autostart = false
	f := newFleet("sv1")
	f.reach(t, s)
	s.Roles[2].Apt = append(s.Roles[2].Apt, "jq")
	if p := f.up(t, s, plan.Goal{}); p.Counts()[plan.StartNode] != 1 {
		t.Errorf("it is left lying: %q", lines(p))
	}
}

// Limits and mounts of a stopped node are changed, and it stays stopped.
func TestSleeperIsLeftAlone(t *testing.T) {
	s := observatory()
	s.Nodes[0].Autostart = false
	f := newFleet("sv1")
	f.reach(t, s)
	f.run(plan.Stop(s, f.observe(), plan.Goal{Nodes: map[string]bool{"db": true}}), 1)
	s.Nodes[0].Limits.Pids = 100
	s.Nodes[0].Privileged = true
	wantLines(t, f.up(t, s, plan.Goal{}), "node db: update: privileges changed")
}

func TestStopAndStart(t *testing.T) {
	s := observatory()
	f := newFleet("sv1")
	f.reach(t, s)
	goal := plan.Goal{Nodes: map[string]bool{"portal": true, "db": true}}
	stop := plan.Stop(s, f.observe(), goal)
	wantLines(t, stop, "node db: stop: requested", "node portal: stop: requested")
	if d := stop.DisturbedNodes(); !slices.Equal(d, []string{"db", "portal"}) {
		t.Errorf("disturbed: %q", d)
	}
	f.run(stop, 2)
	wantLines(t, plan.Stop(s, f.observe(), goal))
	rebooted := f.observe()
	rebooted[0].Networks = nil
	if _, err := plan.Start(s, rebooted, plan.Goal{}); err == nil ||
		!strings.Contains(err.Error(), "does not exist on this host") || !strings.Contains(err.Error(), "orrery up") {
		t.Errorf("without networks: %v", err)
	}
	start, err := plan.Start(s, f.observe(), plan.Goal{})
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, start, "node db: start: requested", "node db: check: check health", "node portal: start: requested",
		"node portal: check: check health")
	if result := f.run(start, 2); !result.OK() {
		t.Fatal(result.Failed)
	}
	wantLines(t, f.up(t, s, plan.Goal{}))
}

func TestDownOfSome(t *testing.T) {
	s := observatory()
	f := newFleet("sv1")
	f.reach(t, s)
	down := plan.Down(s, f.observe(), plan.Goal{Nodes: map[string]bool{"db": true}, Volumes: true})
	wantLines(t, down, "node db: stop: requested", "node db: destroy: requested",
		"volume pgdata of db: delete: requested")
	for _, step := range down.Steps[1:] {
		if step.Undo != "" {
			t.Errorf("%s claims that it can be undone", step)
		}
	}
	all := plan.Down(s, f.observe(), plan.Goal{})
	if n := all.Counts()[plan.RemoveVolume]; n != 0 {
		t.Errorf("%d volumes are removed without being asked for", n)
	}
}

// Two nodes exchange their places: each is stopped before the other takes its address.
func TestAddressesChangeHands(t *testing.T) {
	s := observatory()
	f := newFleet("sv1")
	f.reach(t, s)
	a, b := &s.Nodes[1], &s.Nodes[2]
	a.NICs[0].Address, b.NICs[0].Address = b.NICs[0].Address, a.NICs[0].Address
	for _, step := range f.reach(t, s).Steps {
		if step.Kind == plan.StartNode && step.Subject == a.Name && len(step.Needs) != 2 {
			t.Errorf("%s needs %v", step, step.Needs)
		}
	}
	f.wantReached(t, s)
}

// Networks that change places wait for each other in a cycle. The plan must cut it without leaving
// out a step.
func TestSubnetsChangeHands(t *testing.T) {
	s := observatory()
	s.Networks = append(s.Networks, site.Network{Name: "data", Subnet: netip.MustParsePrefix("10.2.0.0/24")})
	s.Nodes[0].NICs = append(s.Nodes[0].NICs, site.NIC{Network: "data", Address: netip.MustParseAddr("10.2.0.9")})
	f := newFleet("sv1")
	f.reach(t, s)
	s.Networks[0].Subnet, s.Networks[1].Subnet = s.Networks[1].Subnet, s.Networks[0].Subnet
	s.Networks[0].Gateway = netip.MustParseAddr("10.2.0.1")
	for i := range s.Nodes {
		for j := range s.Nodes[i].NICs {
			on, _ := s.Network(s.Nodes[i].NICs[j].Network)
			s.Nodes[i].NICs[j].Address = site.AddressAfter(on.Subnet.Addr(), 100+i)
		}
	}
	p := f.reach(t, s)
	if n := p.Counts()[plan.MakeNetwork]; n != 2 {
		t.Errorf("%d networks are made", n)
	}
	f.wantReached(t, s)
	for _, step := range p.Steps {
		if step.Kind == plan.MakeNetwork && step.Subject == "cam" &&
			!slices.Equal(step.Disturbs, []string{"db", "portal", "receptor1", "receptor2"}) {
			t.Errorf("network cam disturbs %q", step.Disturbs)
		}
	}
}

// A node that moves is removed from the old host before it is made on the new one.
func TestMove(t *testing.T) {
	s := observatory()
	s.Hosts = append(s.Hosts, site.Host{Name: "sv2", Address: "10.8.1.2"})
	for i := range s.Networks {
		s.Networks[i].MTU = 1450 // small enough to fit between hosts
	}
	f := newFleet("sv1", "sv2")
	f.reach(t, s)
	s.Nodes[0].Host = "sv2"
	for _, goal := range []plan.Goal{{}, {Nodes: map[string]bool{"db": true}}} {
		p := f.up(t, s, goal)
		wantOrder(t, p, s)
		if i := slices.Index(lines(p), "node db: destroy: moves to host sv2"); i < 0 || p.Steps[i].Host != "sv1" {
			t.Errorf("it is not removed from the former host: %q", lines(p))
		}
	}
	f.reach(t, s)
	f.wantReached(t, s)
	s.Nodes[0].Host = "sv1"
	p := f.reach(t, s)
	f.wantReached(t, s)
	if got := p.Counts(); got[plan.RemoveNetwork] != 1 || got[plan.ForgetNames] != 1 {
		t.Errorf("what the last node leaves on a host is not removed: %q", lines(p))
	}
}

func TestNamesOfStepsInPlan(t *testing.T) {
	f := newFleet("sv1")
	s := observatory()
	placed, err := place.Assign(s, f.observe())
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range f.reach(t, s).Steps {
		if step.Kind == plan.WriteNames && (step.Names != spec.NamesDigest(placed) || step.OldNames != "") {
			t.Errorf("names %q, before %q", step.Names, step.OldNames)
		}
	}
}
