package plan_test

import (
	"slices"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
)

// TestStarved: a machine that was paused because its host had no room continues when it is started.
// A machine frozen by a snapshot is left to the snapshot.
func TestStarved(t *testing.T) {
	s := observatory()
	f := newFleet("sv1")
	f.reach(t, s)
	hosts := f.observe()
	for i := range hosts[0].Nodes {
		n := &hosts[0].Nodes[i]
		n.State, n.Starved = observe.Frozen, n.Name == "db"
	}
	start, err := plan.Start(s, hosts, plan.Goal{})
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, start, "node db: start: requested", "node db: check: check health")
}

// withDB returns the host of a running site whose node db is changed by edit, and a goal that
// selects only this node.
func withDB(t *testing.T, s *site.Site, edit func(*observe.Node)) ([]observe.Host, plan.Goal) {
	t.Helper()
	f := newFleet("sv1")
	f.reach(t, s)
	hosts := f.observe()
	i := slices.IndexFunc(hosts[0].Nodes, func(n observe.Node) bool { return n.Name == "db" })
	edit(&hosts[0].Nodes[i])
	return hosts, plan.Goal{Nodes: map[string]bool{"db": true}}
}

// TestPanicked: a machine with a kernel panic is restarted by start and by up, with that as the
// reason.
func TestPanicked(t *testing.T) {
	s := observatory()
	hosts, only := withDB(t, s, func(n *observe.Node) {
		n.State, n.Panic = observe.Frozen,
			"Kernel panic - not syncing: no root"
	})
	start, err := plan.Start(s, hosts, only)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, start, "node db: stop: its kernel has panicked", "node db: start: requested",
		"node db: check: check health")
	up, err := plan.Up(s, hosts, only)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(lines(up), "\n"); !strings.Contains(got, "node db: stop: its kernel has panicked\n") ||
		!strings.Contains(got, "node db: start: ") {
		t.Errorf("up:\n%s", got)
	}
}

// TestLostLink: up and restart restore a node's deleted link to a network. A link that exists but
// is off its bridge is moved back, and the node keeps running.
func TestLostLink(t *testing.T) {
	s := observatory()
	f := newFleet("sv1")
	f.reach(t, s)
	only := plan.Goal{Nodes: map[string]bool{"db": true}}
	lost := func(gone ...string) []observe.Host {
		hosts := f.observe()
		i := slices.IndexFunc(hosts[0].Nodes, func(n observe.Node) bool { return n.Name == "db" })
		n := &hosts[0].Nodes[i]
		n.NICs = slices.Clone(n.NICs)
		n.NICs[0].Bridge, n.Unlinked = "", gone
		return hosts
	}
	network := lost()[0].Nodes[0].NICs[0].Network
	up, err := plan.Up(s, lost(network), only)
	if err != nil {
		t.Fatal(err)
	}
	why := "its link to network " + network + " is missing"
	if got := strings.Join(lines(up), "\n"); !strings.Contains(got, "node db: stop: "+why) ||
		!strings.Contains(got, "node db: start: ") || up.Counts()[plan.MoveLinks] > 0 {
		t.Errorf("up:\n%s", got)
	}
	restart, err := plan.Restart(s, lost(network), only)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, restart, "node db: stop: requested", "node db: start: requested", "node db: check: check health")
	up, err = plan.Up(s, lost(), only)
	if err != nil || up.Counts()[plan.MoveLinks] != 1 || up.Counts()[plan.StopNode] > 0 {
		t.Errorf("off its bridge: %q, %v", lines(up), err)
	}
}

// TestRootless: a machine without the process that serves its root file system counts as running,
// so it is stopped before it runs again, on this host or another.
func TestRootless(t *testing.T) {
	s := observatory()
	hosts, only := withDB(t, s, func(n *observe.Node) { n.Rootless = true })
	const why = "the process that serves its root has ended"
	start, err := plan.Start(s, hosts, only)
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, start, "node db: stop: "+why, "node db: start: requested", "node db: check: check health")
	wantLines(t, plan.Stop(s, hosts, only), "node db: stop: requested")
	up, err := plan.Up(s, hosts, only)
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(up); !slices.Contains(got, "node db: stop: "+why) {
		t.Errorf("up does %q", got)
	}
}
