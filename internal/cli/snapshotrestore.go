package cli

import (
	"context"
	"errors"

	"orrery/internal/apply/local"
	"orrery/internal/control"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/snapshot"
)

// A restoring puts nodes back as they were in a snapshot.
type restoring struct {
	*app
	site   *site.Site
	host   *local.Host
	record *control.Account
	from   *snapshot.Snapshot
	what   string          // it is, for people
	chosen map[string]bool // nil: all
	nodes  []snapshot.Node
	ran    []*observe.Node // those that run now
	left   []string
	lost   []string
}

// check sees whether the nodes can be put back: each must still have the place that it had.
func (r *restoring) check(ctx context.Context) error {
	r.nodes = r.from.Chosen(r.chosen)
	if len(r.nodes) == 0 {
		return problem.New(problem.Usage, "none of these nodes is in snapshot %s", r.from.ID).Try("orrery snapshot ls --json tells what is in it")
	}
	if err := r.from.MayPutBack(r.Dirs, r.chosen); err != nil {
		return err
	}
	seen, err := r.host.Observe(ctx)
	if err != nil {
		return err
	}
	for _, n := range r.nodes {
		for i := range seen.Nodes {
			now := &seen.Nodes[i]
			if now.Name == n.Record.Name && !now.Staged && !n.Record.Staged && now.ID != n.Record.ID || now.ID == n.Record.ID && now.Staged != n.Record.Staged {
				return problem.New(problem.Surprise, "node %s is of another release now than in snapshot %s", n.Record.Name, r.from.ID).
					Try("orrery switch to release %d first", n.Record.Release)
			}
			if now.ID == n.Record.ID && (now.State == observe.Running || now.State == observe.Frozen) {
				r.ran = append(r.ran, now)
			}
		}
	}
	return nil
}

func (r *restoring) run(ctx context.Context) error {
	if err := r.CarryOut(ctx, r.record, r.host, r.stops()); err != nil {
		return errors.Join(err, r.startFormer(ctx))
	}
	back, err := r.from.PutBack(ctx, r.Dirs, r.host.Engines, r.chosen)
	if err != nil {
		return errors.Join(err, r.startFormer(ctx))
	}
	r.left, r.lost = append(r.left, back.Left...), back.Lost
	if err := r.CarryOut(ctx, r.record, r.host, r.starts()); err != nil {
		return r.takeBack(back, err)
	}
	if err := back.Settle(ctx); err != nil {
		return err
	}
	r.done()
	return nil
}

// takeBack puts back what was there before. It is not interrupted by Ctrl-C: half undone is worse than late.
func (r *restoring) takeBack(back *snapshot.Restore, why error) error {
	ctx := context.Background()
	err := r.CarryOut(ctx, r.record, r.host, r.stopRestored())
	if err == nil {
		err = back.TakeBack(ctx)
	}
	if err == nil {
		err = r.startFormer(ctx)
	}
	if err != nil {
		return problem.New(problem.Left, "%s was not restored, and what was there before could not be put back", r.what).
			Because(errors.Join(why, err)).Try("orrery snapshot restore %s", r.from.ID)
	}
	return problem.New(problem.Undone, "%s was not restored; all is as it was before", r.what).Because(why)
}

func (r *restoring) stops() []*plan.Step {
	var steps []*plan.Step
	for _, n := range r.ran {
		steps = append(steps, &plan.Step{Kind: plan.StopNode, Subject: n.Name, Was: &n.Node})
	}
	return steps
}

func (r *restoring) stopRestored() []*plan.Step {
	var steps []*plan.Step
	for _, n := range r.nodes {
		steps = append(steps, &plan.Step{Kind: plan.KillNode, Subject: n.Record.Name, Was: &n.Record.Node})
	}
	return steps
}

// starts starts the nodes that ran when the snapshot was taken, and proves those that were whole then and are still declared.
func (r *restoring) starts() []*plan.Step {
	var steps []*plan.Step
	for _, n := range r.nodes {
		if !n.Running {
			continue
		}
		steps = append(steps, &plan.Step{Kind: plan.StartNode, Subject: n.Record.Name, Node: &n.Record.Node})
		if _, declared := r.site.Node(n.Record.Name); declared && n.Record.Configured {
			steps = append(steps, &plan.Step{Kind: plan.CheckNode, Subject: n.Record.Name, Node: &n.Record.Node, Needs: []int{len(steps) - 1}})
		}
	}
	return steps
}

func (r *restoring) startFormer(ctx context.Context) error {
	var steps []*plan.Step
	for _, n := range r.ran {
		steps = append(steps, &plan.Step{Kind: plan.StartNode, Subject: n.Name, Node: &n.Node})
	}
	return r.CarryOut(context.WithoutCancel(ctx), r.record, r.host, steps)
}
