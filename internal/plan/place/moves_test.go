package place_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/observe"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// moved returns the hosts after moves.
func moved(t interface{ Fatalf(string, ...any) }, hosts []observe.Host, moves []place.Move) []observe.Host {
	all := slices.Clone(hosts)
	at := func(name string) *observe.Host {
		return &all[slices.IndexFunc(all, func(h observe.Host) bool { return h.Name == name })]
	}
	for _, m := range moves {
		from, to := at(m.From), at(m.To)
		n, ok := from.Node(m.Node)
		if !ok || m.From == m.To || m.Why == "" || to.Drained != nil {
			t.Fatalf("a move that cannot be: %+v", m)
		}
		to.Nodes = append(slices.Clone(to.Nodes), *n)
		from.Nodes = slices.DeleteFunc(slices.Clone(from.Nodes), func(n observe.Node) bool { return n.Name == m.Node })
	}
	return all
}

// fullest returns the largest used share of the hosts that accept nodes.
func fullest(s *site.Site, hosts []observe.Host) (most float64) {
	for _, h := range hosts {
		if h.Drained != nil {
			continue
		}
		declared, _ := s.Host(h.Name)
		cpus, memory := 0.0, 0.0
		for _, n := range h.Nodes {
			node, _ := s.Node(n.Name)
			cpus, memory = cpus+node.Limits.Cpus, memory+float64(node.Limits.Memory)
		}
		factor := max(declared.Oversubscribe, 1)
		most = max(most, cpus/(float64(h.Cpus)*factor), memory/float64(h.Memory))
	}
	return most
}

// TestMovesProperties: all proposed moves are possible, no node moves twice, and the order of
// declaration has no effect. Afterwards no more moves are proposed, no host is fuller than the
// fullest was, and no group is more crowded.
func TestMovesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, hosts := drawn(t)
		for i := range s.Nodes { // on random hosts, as after hosts were added and removed
			h := &hosts[rapid.IntRange(0, len(hosts)-1).Draw(t, "on")]
			if s.Nodes[i].Host != "" {
				h = &hosts[slices.IndexFunc(hosts, func(h observe.Host) bool { return h.Name == s.Nodes[i].Host })]
			}
			h.Nodes = append(h.Nodes, observe.Node{Node: spec.Node{Name: s.Nodes[i].Name, ID: s.Nodes[i].ID},
				State: observe.Running})
		}
		proposed, err := place.Rebalance(s, hosts)
		if err != nil {
			t.Fatal(err)
		}
		other, seen := shuffled(t, s, hosts)
		if again, err := place.Rebalance(other, seen); err != nil || !slices.Equal(again.Moves, proposed.Moves) {
			t.Fatalf("proposed is %+v, and in another order %+v (%v)", proposed, again, err)
		}
		once := map[string]bool{}
		for _, m := range proposed.Moves {
			if n, _ := s.Node(m.Node); once[m.Node] || n.Host != "" {
				t.Fatalf("%s moves twice, or is fixed", m.Node)
			}
			once[m.Node] = true
		}
		after := moved(t, hosts, proposed.Moves)
		if initial, final := fullest(s, hosts), fullest(s, after); final > max(initial, 1)+1e-9 {
			t.Fatalf("the fullest host was taken to %g, and is to %g", initial, final)
		}
		worst := func(hosts []observe.Host) (most int) {
			placed, err := place.Assign(s, hosts)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range place.SpreadViolations(placed, hosts) {
				most = max(most, c.Nodes-c.Few)
			}
			return most
		}
		if initial, final := worst(hosts), worst(after); final > initial {
			t.Fatalf("the worst crowd was %d, and is %d", initial, final)
		}
		left, err := place.ProposeDrain(s, hosts, hosts[0].Name)
		if err != nil || len(left.Moves)+len(left.Stuck) != len(hosts[0].Nodes) {
			t.Fatalf("of %d nodes leave %+v (%v)", len(hosts[0].Nodes), left, err)
		}
		moved(t, hosts, left.Moves)
	})
}

// TestRebalanceTwoGroups: a node that is in two groups does not move to where one of them has more
// nodes already, however much the other gains.
func TestRebalanceTwoGroups(t *testing.T) {
	hosts := machines(64, 64)
	s := over(hosts, 6, site.Limits{Cpus: 1, Memory: gib})
	s.Groups = []site.Group{{Name: "web", Spread: site.SpreadOverHosts,
		Nodes: []string{"node0", "node1", "node2", "node3"}},
		{Name: "db", Spread: site.SpreadOverHosts, Nodes: []string{"node0", "node4", "node5"}}}
	all := *s
	all.Nodes = slices.Clone(s.Nodes)
	for i := range all.Nodes {
		all.Nodes[i].Host = "sv1"
		if i > 3 {
			all.Nodes[i].Host = "sv2"
		}
	}
	for i := range s.Nodes[1:] { // the others may not move
		s.Nodes[1+i].Host = all.Nodes[1+i].Host
	}
	got, err := place.Rebalance(s, settled(&all, hosts, func(string) bool { return true }))
	if err != nil || len(got.Moves) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRebalance(t *testing.T) {
	hosts, limits := machines(8, 8, 8), site.Limits{Cpus: 1, Memory: gib}
	s := over(hosts, 7, limits)
	s.Groups = []site.Group{{Name: "web", Spread: site.SpreadOverHosts, Nodes: []string{"node0", "node1"}}}
	all := *s
	all.Nodes = slices.Clone(s.Nodes)
	for i := range all.Nodes {
		all.Nodes[i].Host = "sv1"
	}
	hosts = settled(&all, hosts, func(string) bool { return true })
	got, err := place.Rebalance(s, hosts)
	if err != nil || len(got.Moves) != 4 ||
		got.Moves[0] != (place.Move{Node: "node1", From: "sv1", To: "sv2",
			Why: "group web has 2 nodes on sv1 and 0 on sv2"}) {
		t.Fatalf("%+v, %v", got, err)
	}
	if why := got.Moves[1].Why; why != "sv1 is used to 75 % and sv3 to 0 %; afterwards 62 % and 12 %" {
		t.Errorf("the second moves since %s", why)
	}
	hosts = moved(t, hosts, got.Moves)
	if got, err := place.Rebalance(s, hosts); err != nil || len(got.Moves) > 0 {
		t.Errorf("and then %+v (%v)", got, err)
	}
	hosts[2].Unknown = true
	if _, err := place.Rebalance(s, hosts); problem.ExitCode(err) != int(problem.Unable) {
		t.Errorf("with a host of which nothing is known: %v", err)
	}

	hosts = machines(8, 8)
	s = over(hosts, 6, site.Limits{})
	hosts = settled(&all, hosts, func(name string) bool { return name != "node6" })
	if got, err := place.Rebalance(s, hosts); err != nil || len(got.Moves) != 3 ||
		got.Moves[0].Why != "sv1 has 6 nodes without limits and sv2 has 0" {
		t.Errorf("nodes without limits: %+v, %v", got, err)
	}
}

func TestLeave(t *testing.T) {
	hosts := machines(8, 8)
	s := over(hosts, 4, site.Limits{Cpus: 3})
	hosts[0].Nodes = []observe.Node{{Node: spec.Node{Name: "node0", ID: 1}}, {Node: spec.Node{Name: "node1", ID: 2}},
		{Node: spec.Node{Name: "node2", ID: 3, Release: 7, Staged: true}}}
	s.Nodes[1].Host, s.Nodes[2].Host = "sv1", "sv2"
	hosts[0].Drained = &observe.Drain{}
	got, err := place.ProposeDrain(s, hosts, "sv1")
	if err != nil || len(got.Moves) != 0 || len(got.Stuck) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, want := range []string{"node0: none of sv2 has 3 cpus and 0 MiB free then (lower limits, or declare another [host.…])",
		`node1: it is tied to that host (remove host = "sv1", and drain again)`,
		"node2 of release 7: it is in quarantine"} {
		if text := got.Stuck[i].Node + ": " + got.Stuck[i].Why + " (" + got.Stuck[i].Cure +
			")"; !strings.HasPrefix(text, want) {
			t.Errorf("%s, not %s", text, want)
		}
	}
	s.Nodes[3].Limits.Cpus = 1
	if got, err = place.ProposeDrain(s, hosts, "sv1"); err != nil || len(got.Moves) != 1 ||
		got.Moves[0] != (place.Move{Node: "node0", From: "sv1", To: "sv2", Why: "host sv1 is drained"}) {
		t.Errorf("%+v, %v", got, err)
	}
	hosts[0].Unknown = true
	if _, err := place.ProposeDrain(s, hosts, "sv1"); problem.ExitCode(err) != int(problem.Unable) {
		t.Errorf("of a host of which nothing is known: %v", err)
	}
}
