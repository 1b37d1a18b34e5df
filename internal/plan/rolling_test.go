package plan_test

import (
	"slices"
	"testing"

	"orrery/internal/plan"
	"orrery/internal/plan/wayback"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// rolling returns the observatory on a fleet, and the site after an edit of what the receptors'
// layer is built from.
func rolling(t *testing.T, batch site.Batch) (*fleet, *site.Site) {
	t.Helper()
	s := observatory()
	s.Groups = []site.Group{{Name: "receptors", Nodes: []string{"receptor1", "receptor2"}, Batch: batch}}
	f := newFleet("sv1")
	if p := f.reach(t, s); len(p.Batches) > 0 || p.Counts()[plan.BeginBatch] > 0 {
		t.Errorf("the first up is in batches:\n%s", text(p))
	}
	s.Roles[1].Apt = append(s.Roles[1].Apt, "jq")
	return f, s
}

func TestGroupRolls(t *testing.T) {
	f, s := rolling(t, site.Batch{Nodes: 1})
	p := f.up(t, s, plan.Goal{})
	why := "role layer changed: receptor: apt changed"
	want := []string{"layer debian + receptor: build: not in the store: " + p.Steps[0].Layer.Digest,
		"batch 1 of 2: batch: receptor1"}
	want = append(want, replacement("receptor1", why, true)...)
	want = append(want, "batch 2 of 2: batch: receptor2")
	want = append(want, replacement("receptor2", why, true)...)
	wantLines(t, p, want...)
	if f.reach(t, s); f.up(t, s, plan.Goal{}).Empty() {
		f.wantReached(t, s)
	}
	down := plan.Down(s, f.observe(), plan.Goal{})
	if len(down.Batches) > 0 || down.Counts()[plan.BeginBatch] > 0 {
		t.Errorf("down is in batches:\n%s", text(down))
	}
}

// The goal's limit overrides those of groups, and without a limit all nodes are disturbed at once.
func TestWhoSaysHowManyRoll(t *testing.T) {
	for _, c := range []struct {
		group, goal site.Batch
		batches     int
	}{
		{site.Batch{}, site.Batch{}, 0},
		{site.Batch{Nodes: 2}, site.Batch{}, 0},
		{site.Batch{Percent: 50}, site.Batch{}, 2},
		{site.Batch{Percent: 1}, site.Batch{}, 2},
		{site.Batch{Nodes: 1}, site.Batch{Percent: 100}, 0},
		{site.Batch{Nodes: 1}, site.Batch{Nodes: 2}, 0},
		{site.Batch{}, site.Batch{Nodes: 1}, 2},
		{site.Batch{}, site.Batch{Percent: 99}, 2},
	} {
		f, s := rolling(t, c.group)
		if p := f.up(t, s, plan.Goal{Batch: c.goal}); len(p.Batches) != c.batches {
			t.Errorf("group %s, asked for %s: %d batches, not %d", c.group, c.goal, len(p.Batches), c.batches)
		}
		chosen := plan.Goal{Batch: c.goal, Nodes: map[string]bool{"receptor2": true}}
		if p := f.up(t, s, chosen); len(p.Batches) > 0 {
			t.Errorf("one node is in batches:\n%s", text(p))
		}
	}
}

// A database that is down is back before the nodes that need it healthy are disturbed.
func TestBatchesKeepTheOrderOfHealth(t *testing.T) {
	f, s := rolling(t, site.Batch{})
	s.Roles[0].Apt = []string{"jq"} // of the database too
	s.Roles[3].Apt = []string{"jq"} // and of the portal, which needs all others
	p := f.up(t, s, plan.Goal{Batch: site.Batch{Nodes: 1}})
	if len(p.Batches) != 4 || !slices.Equal(p.Batches[3], []string{"portal"}) {
		t.Errorf("the batches are %q", p.Batches)
	}
	wantOrder(t, p, s)
}

// The failed batch is restored, the next is untouched, and after a fix of the site, the same
// command completes the work.
func TestFailedBatchIsPutBack(t *testing.T) {
	f, s := rolling(t, site.Batch{Nodes: 1})
	before := f.observe()
	f.hosts[0].Healthy = func(n *spec.Node) error {
		if n.Name == "receptor1" {
			return errSick
		}
		return nil
	}
	p := f.up(t, s, plan.Goal{})
	r := f.run(p, 4)
	if len(r.Failed) != 1 || r.Failed[0].Step.Subject != "receptor1" {
		t.Fatalf("failed: %v", r.Failed)
	}
	back, left := wayback.Restore(p, r.Done, failedSteps(r))
	if got := back.Nodes(); !slices.Equal(got, []string{"receptor1"}) || len(left) > 0 {
		t.Errorf("put back is %q, left %q", got, left)
	}
	if r := f.run(back, 4); !r.OK() {
		t.Fatal(r.Failed)
	}
	if lasting(before, nil) != lasting(f.observe(), nil) {
		t.Errorf("before\n%+v\nafter\n%+v", before, f.observe())
	}
	f.hosts[0].Healthy = nil
	if p := f.up(t, s, plan.Goal{}); len(p.Batches) != 2 || p.Batches[0][0] != "receptor1" {
		t.Errorf("the batches are %q", p.Batches)
	}
	f.reach(t, s)
	f.wantReached(t, s)
}

// A node that is already down is back before another is disturbed.
func TestWhatIsAwayIsBackFirst(t *testing.T) {
	f, s := rolling(t, site.Batch{Nodes: 1})
	if r := f.run(plan.Stop(s, f.observe(), plan.Goal{Nodes: map[string]bool{"receptor2": true}}), 1); !r.OK() {
		t.Fatal(r.Failed)
	}
	f.hosts[0].Healthy = func(*spec.Node) error { return errSick }
	p := f.up(t, s, plan.Goal{})
	watch := &ended{}
	f.watched(p, watch, 4)
	for _, step := range watch.began {
		if step.Subject == "receptor1" {
			t.Errorf("%s was begun while receptor2 was away", step)
		}
	}
}
