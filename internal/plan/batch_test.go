package plan_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/apply"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/wayback"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// bounds adds groups with limits on the number of disturbed nodes to a random site. It returns a
// goal that may have such a limit as well.
func bounds(t *rapid.T, s *site.Site) plan.Goal {
	batch := func(name string) site.Batch {
		if rapid.Bool().Draw(t, name+" in percent") {
			return site.Batch{Percent: 1 + small(t, 99, name)}
		}
		return site.Batch{Nodes: small(t, 3, name)}
	}
	for i := range 2 {
		g := site.Group{Name: fmt.Sprint("group", i), Batch: batch("batch of a group")}
		for j := range s.Nodes {
			if n := &s.Nodes[j]; rapid.Bool().Draw(t, "in group") {
				g.Nodes = append(g.Nodes, n.Name)
				n.Groups = append(n.Groups, g.Name)
			}
		}
		s.Groups = append(s.Groups, g)
	}
	if rapid.Bool().Draw(t, "asked for") {
		return plan.Goal{Batch: batch("batch asked for")}
	}
	return plan.Goal{}
}

// disturbed returns the running nodes that a plan disturbs.
func disturbed(p *plan.Plan, s *site.Site, hosts []observe.Host) map[string]bool {
	all := map[string]bool{}
	for _, step := range p.Steps {
		if _, declared := s.Node(step.Subject); !declared || !step.ForNode() || len(step.Disturbs) == 0 {
			continue
		}
		for i := range hosts {
			if n, ok := hosts[i].Node(step.Subject); ok && n.State == observe.Running {
				all[n.Name] = true
			}
		}
	}
	return all
}

// wantBatches checks that every node that is disturbed is in one batch, that no batch is too large,
// and that each waits for those before.
func wantBatches(t *rapid.T, p *plan.Plan, s *site.Site, hosts []observe.Host, goal plan.Goal) {
	t.Helper()
	rolls := disturbed(p, s, hosts)
	in := map[string]int{}
	for i, batch := range p.Batches {
		if len(batch) == 0 {
			t.Fatalf("batch %d is empty:\n%s", i+1, text(p))
		}
		for _, name := range batch {
			if in[name] != 0 || !rolls[name] {
				t.Fatalf("node %s is in batches %d and %d, disturbed %t:\n%s", name, in[name], i+1, rolls[name], text(p))
			}
			in[name] = i + 1
		}
	}
	if len(p.Batches) > 0 && len(in) != len(rolls) {
		t.Fatalf("%d nodes are in batches, of %d that are disturbed:\n%s", len(in), len(rolls), text(p))
	}
	together := map[int]bool{} // batches that are reported as too large
	for _, step := range p.Steps {
		if step.Kind == plan.BeginBatch && strings.HasSuffix(step.Reason, "must change together") {
			var n int
			_, _ = fmt.Sscan(step.Subject, &n)
			together[n] = true
		}
	}
	bundle := bundled(t, s, hosts)
	most := func(nodes []string, b site.Batch, of int) {
		t.Helper()
		if !b.IsLimited() {
			return
		}
		if len(p.Batches) == 0 {
			n := 0
			for _, name := range nodes {
				if rolls[name] {
					n++
				}
			}
			if n > b.Size(of) {
				t.Fatalf("%d nodes are disturbed at once, not %d:\n%s", n, b.Size(of), text(p))
			}
		}
		for i, batch := range p.Batches {
			var bound []string
			for _, name := range batch {
				if slices.Contains(nodes, name) {
					bound = append(bound, name)
				}
			}
			if len(bound) <= b.Size(of) {
				continue
			}
			for _, x := range bound {
				for _, y := range bound {
					if !together[i+1] || !bundle[x][y] {
						t.Fatalf("batch %d has %q, not %d of %q:\n%s", i+1, bound, b.Size(of), nodes, text(p))
					}
				}
			}
		}
	}
	if goal.Batch != (site.Batch{}) {
		var all []string
		for _, n := range s.Nodes {
			all = append(all, n.Name)
		}
		most(all, goal.Batch, len(rolls))
	} else {
		for _, g := range s.Groups {
			most(g.Nodes, g.Batch, len(g.Nodes))
		}
	}
	before := closure(p)
	gate, last := map[string]int{}, map[string]int{}
	for n, step := range p.Steps {
		if in[step.Subject] == 0 || !step.ForNode() {
			continue
		}
		if step.Batch != in[step.Subject] {
			t.Fatalf("%s is in batch %d, not %d", step, step.Batch, in[step.Subject])
		}
		if _, ok := gate[step.Subject]; !ok && len(step.Disturbs) > 0 {
			gate[step.Subject] = n
		}
		last[step.Subject] = n
	}
	for a := range in {
		for b := range in {
			if in[a] < in[b] && !before[gate[b]][last[a]] {
				t.Fatalf("%s of batch %d does not wait for %s of batch %d:\n%s", b, in[b], a, in[a], text(p))
			}
		}
		for _, step := range p.Steps {
			for _, need := range step.Needs {
				if in[step.Subject] > 0 && p.Steps[need].Kind == plan.BuildLayer && !before[gate[a]][need] {
					t.Fatalf("%s is disturbed before %s is built for %s:\n%s", a, p.Steps[need].Subject, step.Subject, text(p))
				}
			}
		}
	}
}

// bundled returns, for each node that a plan without batches changes, the nodes that must change
// together with it.
func bundled(t *rapid.T, s *site.Site, hosts []observe.Host) map[string]map[string]bool {
	t.Helper()
	p, err := plan.Up(s, hosts, plan.Goal{Batch: site.Batch{Percent: 100}})
	if err != nil || len(p.Batches) > 0 {
		t.Fatalf("%v\n%s", err, text(p))
	}
	rolls, before := disturbed(p, s, hosts), closure(p)
	gate, last := map[string]int{}, map[string]int{}
	for n, step := range p.Steps {
		if _, ok := gate[step.Subject]; !ok && step.ForNode() && (!rolls[step.Subject] || len(step.Disturbs) > 0) {
			gate[step.Subject] = n
		}
		last[step.Subject] = n
	}
	waits := map[string]map[string]bool{}
	for a := range gate {
		waits[a] = map[string]bool{}
		for b := range gate {
			waits[a][b] = before[last[a]][gate[b]]
		}
	}
	for k := range gate {
		for a := range gate {
			for b := range gate {
				waits[a][b] = waits[a][b] || waits[a][k] && waits[k][b]
			}
		}
	}
	both := map[string]map[string]bool{}
	for a := range gate {
		both[a] = map[string]bool{a: true}
		for b := range gate {
			both[a][b] = a == b || waits[a][b] && waits[b][a]
		}
	}
	return both
}

// closure returns all steps that are done before each step.
func closure(p *plan.Plan) []map[int]bool {
	before := make([]map[int]bool, len(p.Steps))
	for n, step := range p.Steps {
		before[n] = map[int]bool{}
		for _, need := range step.Needs {
			before[n][need] = true
			for m := range before[need] {
				before[n][m] = true
			}
		}
	}
	return before
}

// sick is the state reported for a node that fails its check.
var errSick = errors.New("sick")

func TestBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGenes(t)
		f := newFleet(hostNames[:g.hosts]...)
		first := g.site()
		goal := bounds(t, first)
		if p := f.up(t, first, goal); len(p.Batches) > 0 {
			t.Fatalf("the first up is in batches:\n%s", text(p))
		}
		f.reach(t, first)
		s := g.edited(t).site()
		goal = bounds(t, s)
		before := f.observe()
		p := f.up(t, s, goal)
		wantOrder(t, p, s)
		wantBatches(t, p, s, before, goal)
		if len(p.Batches) == 0 {
			return
		}
		for _, name := range slices.Concat(p.Batches...) { // one of them at most
			if rapid.Bool().Draw(t, "stays healthy") {
				continue
			}
			for _, h := range f.hosts {
				h.Healthy = func(n *spec.Node) error {
					if n.Name == name {
						return errSick
					}
					return nil
				}
			}
			break
		}
		watch := &ended{}
		result := f.watched(p, watch, 1+small(t, 3, "parallel"))
		wantUntouched(t, p, result, watch)
		back, left := wayback.Restore(p, result.Done, failedSteps(result))
		if mended := f.run(back, 4); !mended.OK() {
			t.Fatalf("%v\n%s\nback\n%s", mended.Failed, text(p), text(back))
		}
		wantServing(t, f, before, p, result, left)
		for _, h := range f.hosts {
			h.Healthy = nil
		}
		again := f.up(t, s, goal)
		wantOrder(t, again, s)
		wantBatches(t, again, s, f.observe(), goal)
		if result := f.run(again, 4); !result.OK() {
			t.Fatalf("%v\n%s", result.Failed, text(again))
		}
		f.settle(t, again)
		f.wantReached(t, s)
		if last := f.up(t, s, goal); !last.Empty() {
			t.Fatalf("the last plan is not empty:\n%s", text(last))
		}
	})
}

// A run that is killed at any moment is also finished in batches.
func TestBatchesAfterKill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, g := begun(t)
		s := g.edited(t).site()
		goal := bounds(t, s)
		for range 1 + small(t, 1, "kills") {
			f.faults.KillAt(1 + small(t, 80, "kill at"))
			f.run(f.up(t, s, goal), 1+small(t, 3, "parallel"))
			f.faults.Revive()
		}
		before := f.observe()
		p := f.up(t, s, goal)
		wantOrder(t, p, s)
		wantBatches(t, p, s, before, goal)
		if result := f.run(p, 4); !result.OK() {
			t.Fatalf("%v\n%s", result.Failed, text(p))
		}
		f.settle(t, p)
		f.wantReached(t, s)
	})
}

func (f *fleet) watched(p *plan.Plan, watch *ended, parallel int) *apply.Result {
	workers := map[string]apply.Worker{}
	for _, h := range f.hosts {
		workers[h.Name] = h
	}
	return apply.Run(context.Background(), p, workers, watch, parallel)
}

func failedSteps(r *apply.Result) []*plan.Step {
	var steps []*plan.Step
	for _, f := range r.Failed {
		steps = append(steps, f.Step)
	}
	return steps
}

// wantUntouched checks that nothing disturbed a node of a batch after the one that failed first.
func wantUntouched(t *rapid.T, p *plan.Plan, r *apply.Result, watch *ended) {
	t.Helper()
	failed := len(p.Batches) + 1
	for _, f := range r.Failed {
		if f.Step.Batch > 0 {
			failed = min(failed, f.Step.Batch)
		}
	}
	for _, s := range watch.began {
		if s.Batch > failed && len(s.Disturbs) > 0 {
			t.Fatalf("%s of batch %d was begun, although batch %d failed:\n%s", s, s.Batch, failed, text(p))
		}
	}
}

// wantServing checks that, after nodes were put back, those of batches run, and are as they were or
// as they shall be.
func wantServing(t *rapid.T, f *fleet, before []observe.Host, p *plan.Plan, r *apply.Result, left []string) {
	t.Helper()
	whole := map[string]bool{}
	for _, name := range slices.Concat(p.Batches...) {
		whole[name] = true
	}
	for _, s := range slices.Concat(failedSteps(r), r.Skipped) {
		delete(whole, s.Subject)
	}
	now := f.observe()
	for i := range before {
		for _, n := range before[i].Nodes {
			if whole[n.Name] || slices.Contains(left, n.Name) || !slices.Contains(slices.Concat(p.Batches...), n.Name) {
				continue
			}
			current, ok := now[i].Node(n.Name)
			if !ok || current.State != observe.Running || !current.Configured && n.Configured || current.Layer != n.Layer ||
				current.Base != n.Base || spec.DescribeChanges(current.Config.Parts, n.Config.Parts) != "" {
				t.Fatalf("node %s was\n%+v, is\n%+v after\n%s", n.Name, n, current, text(p))
			}
		}
	}
}
