package snapshots

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/here"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/snapshot"
)

// Restored is what came of putting nodes back.
type Restored struct {
	What  string   // they are as in, for people
	Nodes int      // how many
	Left  []string // volumes that are left as they are, and why
	Lost  []string // what was not put back
}

// Restore puts the nodes that selectors mean, or all that are in it, back as they were in a snapshot.
func Restore(ctx context.Context, c *control.Session, s *site.Site, id string, selectors []string) (*Restored, error) {
	h, chosen, err := c.Chosen(s, selectors)
	if err != nil {
		return nil, err
	}
	r := &restoring{Session: c, site: s, host: h, chosen: chosen}
	err = c.Locked(ctx, s, h, func(account *control.Account) (err error) {
		if r.from, err = snapshot.Open(c.Dirs, s.Key(), id); err != nil {
			return err
		}
		r.account, r.What = account, "snapshot "+r.from.ID
		if err := r.check(ctx); err != nil {
			return err
		}
		if err := r.agree(); err != nil {
			return err
		}
		return r.run(ctx)
	})
	if err != nil {
		return nil, err
	}
	return &r.Restored, nil
}

// Once puts back a snapshot that is there for nothing else, and removes it. It stays if this is cut short: then it is what the restoring goes on with. The caller has the lock of
// the site, and the consent of whoever is concerned.
func Once(ctx context.Context, c *control.Session, account *control.Account, s *site.Site, h *apply.Steered, from *snapshot.Snapshot, what string) (*Restored, error) {
	r := &restoring{Session: c, site: s, host: h, account: account, from: from, Restored: Restored{What: what, Left: from.Omitted}}
	err := r.check(ctx)
	if err == nil {
		err = r.run(ctx)
	}
	if cut, _, unread := snapshot.Unfinished(c.Dirs, s.Key()); cut != "" || unread != nil {
		return nil, errors.Join(err, unread)
	}
	if err = errors.Join(err, snapshot.Remove(c.Dirs, s.Key(), from.ID)); err != nil {
		return nil, err
	}
	return &r.Restored, nil
}

// A restoring puts nodes back as they were in a snapshot.
type restoring struct {
	*control.Session
	Restored
	site    *site.Site
	host    *apply.Steered
	account *control.Account
	from    *snapshot.Snapshot
	chosen  map[string]bool // nil: all
	nodes   []snapshot.Node
	ran     []*observe.Node // those that run now
}

// agree gets the consent to lose what was written since.
func (r *restoring) agree() error {
	why := fmt.Sprintf("What %s of %s and their volumes have written since %s would be lost.", phrase.Count(len(r.nodes), "node"), r.site.Name, r.from.Time.Local().Format(time.DateTime))
	if _, err := r.Asker.Ask(control.Question{About: control.Restore, Site: r.site.Name, Why: why}); err != nil {
		return err
	}
	_, err := r.AskProduction(r.site, why)
	return err
}

// check sees whether the nodes can be put back: each must still have the place that it had.
func (r *restoring) check(ctx context.Context) error {
	r.nodes = r.from.Chosen(r.chosen)
	if len(r.nodes) == 0 {
		return problem.New(problem.Usage, "none of these nodes is in snapshot %s", r.from.ID).Try("orrery snapshot ls --json shows what is in it")
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
				return problem.New(problem.Surprise, "node %s now belongs to another release than in snapshot %s", n.Record.Name, r.from.ID).
					Try("orrery switch to release %d first", n.Record.Release)
			}
			if now.ID == n.Record.ID && now.Runs() {
				r.ran = append(r.ran, now)
			}
		}
	}
	return nil
}

// run puts the nodes back: all of them, or none.
func (r *restoring) run(ctx context.Context) error {
	near, err := here.Of(r.host)
	if err != nil {
		return err
	}
	if err := r.CarryOut(ctx, r.account, r.host, r.stops()); err != nil {
		return errors.Join(err, r.startFormer(ctx))
	}
	back, err := r.from.PutBack(ctx, r.Dirs, near.ByName(), r.chosen)
	if err != nil {
		return errors.Join(err, r.startFormer(ctx))
	}
	r.Nodes, r.Left, r.Lost = len(r.nodes), append(r.Left, back.Left...), back.Lost
	if err := r.CarryOut(ctx, r.account, r.host, r.starts()); err != nil {
		return r.takeBack(back, err)
	}
	if err := back.Settle(ctx); err != nil {
		return err
	}
	return nil
}

// takeBack puts back what was there before. It is not interrupted by Ctrl-C: half undone is worse than late.
func (r *restoring) takeBack(back *snapshot.Restore, why error) error {
	ctx := context.Background()
	err := r.CarryOut(ctx, r.account, r.host, r.stopRestored())
	if err == nil {
		err = back.TakeBack(ctx)
	}
	if err == nil {
		err = r.startFormer(ctx)
	}
	if err != nil {
		return problem.New(problem.Left, "%s was not restored, and what was there before could not be put back", r.What).
			Because(errors.Join(why, err)).Try("orrery snapshot restore %s", r.from.ID)
	}
	return problem.New(problem.Undone, "%s was not restored; everything is as it was before", r.What).Because(why)
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
	return r.CarryOut(context.WithoutCancel(ctx), r.account, r.host, steps)
}
