package snapshots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/snapshot"
	"orrery/internal/text/humanize"
)

// Restored is the result of restoring nodes.
type Restored struct {
	What  string   // what was restored, for people
	Nodes int      // number of nodes
	Left  []string // volumes that were left unchanged, and why
	Lost  []string // what was not restored
}

// Restore restores nodes to their state in a snapshot: those that match selectors, or all in the
// snapshot.
func Restore(ctx context.Context, c *control.Session, s *site.Site, id string, selectors []string) (*Restored, error) {
	f, chosen, err := control.SelectedHosts(ctx, c, s, selectors)
	if err != nil {
		return nil, err
	}
	r := &restoreOp{Session: c, site: s, fleet: f, chosen: chosen}
	err = c.RunLocked(ctx, s, f, func(account *control.JournalWriter) error {
		all, err := openSnapshots(ctx, f)
		if err != nil {
			return err
		}
		if r.from, err = find(all, s, id); err != nil {
			return err
		}
		r.account, r.What = account, "snapshot "+r.from.ID
		if err := r.checkAll(ctx); err != nil {
			return err
		}
		if err := r.askConsent(); err != nil {
			return err
		}
		return r.run(ctx)
	})
	if err != nil {
		return nil, err
	}
	return &r.Restored, nil
}

// RestoreOnce restores a snapshot of one host that was made only for this, and then removes the snapshot.
// If it is interrupted, the snapshot stays, so that the restoring can be resumed from it. The
// caller holds the lock of the site and has the necessary consent.
func RestoreOnce(ctx context.Context, c *control.Session, account *control.JournalWriter, s *site.Site, f *apply.Fleet,
	h *apply.HostClient, from *snapshot.Snapshot, what string) (*Restored, error) {
	r := &restoreOp{
		Session: c, site: s, fleet: f, account: account, from: mergeParts(f, map[string]*snapshot.Snapshot{h.Name: from}),
		Restored: Restored{What: what, Left: from.Omitted},
	}
	err := r.checkAll(ctx)
	if err == nil {
		err = r.run(ctx)
	}
	if cut, _, unread := h.Snapshots.Restoring(ctx); cut != "" || unread != nil {
		return nil, errors.Join(err, unread)
	}
	if err = errors.Join(err, h.Snapshots.Remove(context.WithoutCancel(ctx), from.ID)); err != nil {
		return nil, err
	}
	return &r.Restored, nil
}

// A restoreOp restores nodes to their state in a snapshot.
type restoreOp struct {
	Session *control.Session
	Restored
	site    *site.Site
	fleet   *apply.Fleet
	account *control.JournalWriter
	from    *Snapshot
	chosen  map[string]bool // nil for all nodes
	nodes   []placed
	ran     []running // nodes that run now
}

// A placed node is a node of a snapshot, with the host that has it. A running node is one that runs
// now.
type (
	placed struct {
		snapshot.Node
		host string
	}
	running struct {
		*observe.Node
		host string
	}
)

// askConsent asks for consent to lose what was written since the snapshot.
func (r *restoreOp) askConsent() error {
	why := fmt.Sprintf("All changes to %s of %s and their volumes since %s would be lost.",
		humanize.Plural(len(r.nodes), "node"), r.site.Name, r.from.Time.Local().Format(time.DateTime))
	_, err := r.Session.Confirmer.Ask(control.Question{About: control.Restore, Site: r.site.Name, Why: why})
	if err != nil {
		return err
	}
	_, err = r.Session.AskProduction(r.site, why)
	return err
}

// checkAll returns an error if a node cannot be restored. Each node must still be on the same host.
func (r *restoreOp) checkAll(ctx context.Context) error {
	homes := map[string]string{}
	for _, h := range r.fleet.All {
		if part := r.from.parts[h.Name]; part != nil {
			for _, n := range part.Chosen(r.chosen) {
				r.nodes = append(r.nodes, placed{n, h.Name})
				homes[n.Record.Name] = h.Name
			}
		}
	}
	if len(r.nodes) == 0 {
		return problem.New(problem.Usage, "none of these nodes is in snapshot %s", r.from.ID).
			Try("orrery snapshot ls --json shows what is in it")
	}
	if len(r.from.Lacking) > 0 && r.chosen == nil {
		return problem.New(problem.Surprise, "host %s has lost its part of snapshot %s", humanize.List(r.from.Lacking, 12),
			r.from.ID).Try("name the nodes to restore, on other hosts")
	}
	if err := r.checkInterrupted(ctx); err != nil {
		return err
	}
	seen, err := r.fleet.Observe(ctx)
	if err != nil {
		return err
	}
	for i, h := range r.fleet.All {
		for j := range seen[i].Nodes {
			if now := &seen[i].Nodes[j]; !now.Staged && homes[now.Name] == "" {
				homes[now.Name] = h.Name
			}
		}
	}
	for _, n := range r.nodes {
		if err := r.checkNode(n, seen); err != nil {
			return err
		}
	}
	r.fleet.Views().SetHomes(homes)
	return nil
}

// checkNode returns an error if a node cannot be restored. If the node is, or may be, on another
// host by now, it would exist twice.
func (r *restoreOp) checkNode(n placed, seen []observe.Host) error {
	found := false
	for i, h := range r.fleet.All {
		for j := range seen[i].Nodes {
			now := &seen[i].Nodes[j]
			if h.Name != n.host {
				if now.ID == n.Record.ID || now.Name == n.Record.Name && !now.Staged && !n.Record.Staged {
					return problem.New(problem.Surprise, "node %s was on host %s in snapshot %s, but host %s has %s now",
						n.Record.Name, n.host, r.from.ID, h.Name, now.Name).
						Try("run orrery down %s first", now.Name)
				}
				continue
			}
			if now.Name == n.Record.Name && !now.Staged && !n.Record.Staged && now.ID != n.Record.ID ||
				now.ID == n.Record.ID && now.Staged != n.Record.Staged {
				return problem.New(problem.Surprise, "node %s now belongs to another release than in snapshot %s", n.Record.Name,
					r.from.ID).
					Try("run orrery switch to release %d first", n.Record.Release)
			}
			if now.ID == n.Record.ID {
				found = true
				if now.Runs() {
					r.ran = append(r.ran, running{now, h.Name})
				}
			}
		}
	}
	if !found && len(r.fleet.Unknown) > 0 {
		return problem.New(problem.Unable, "node %s is no longer on host %s and may be on %s", n.Record.Name, n.host,
			humanize.List(r.fleet.Unknown, 12)).Try("restore it when all hosts answer")
	}
	return nil
}

// checkInterrupted returns an error if an earlier restoring of other nodes was interrupted, because these
// nodes may run by now.
func (r *restoreOp) checkInterrupted(ctx context.Context) error {
	return r.fleet.ForEach(func(_ int, h *apply.HostClient) error {
		id, nodes, err := h.Snapshots.Restoring(ctx)
		if err != nil || id == "" {
			return err
		}
		covered := !slices.ContainsFunc(nodes, func(name string) bool { return r.chosen != nil && !r.chosen[name] })
		if id == r.from.ID && covered {
			return nil
		}
		return problem.New(problem.Left, "the restore of snapshot %s was interrupted", id).At("host "+h.Name).
			Try("orrery snapshot restore %s %s", id, strings.Join(nodes, " "))
	})
}

// run restores the nodes on all hosts. Either all of them are restored or none.
func (r *restoreOp) run(ctx context.Context) error {
	if err := r.account.CarryOut(ctx, r.Session.Watcher, r.fleet, r.stopSteps()); err != nil {
		return errors.Join(err, r.startFormer(ctx))
	}
	on, names := &apply.Fleet{}, map[string][]string{}
	for _, n := range r.nodes {
		names[n.host] = append(names[n.host], n.Record.Name)
	}
	for _, h := range r.fleet.All {
		if len(names[h.Name]) > 0 {
			on.All = append(on.All, h)
		}
	}
	started := false
	all := NewBarrier(on.Names(), func() error {
		started = true
		return r.startRestored(ctx)
	})
	backs, errs := make([]apply.RestoreFailures, len(on.All)), make([]error, len(on.All))
	_ = on.ForEach(func(i int, h *apply.HostClient) error {
		// Once the nodes are restored, this cannot be cancelled: a half-finished undo is worse than
		// a delay.
		until, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		uncut := context.AfterFunc(ctx, cancel)
		errs[i] = h.Snapshots.Restore(until, r.from.ID, names[h.Name], func(b apply.RestoreFailures) error {
			uncut()
			backs[i] = b
			return all.Wait(until, h.Name, 0)
		})
		if errs[i] != nil {
			all.End(errs[i])
		}
		return nil
	})
	if all.err == nil {
		for _, b := range backs {
			r.Left, r.Lost = append(r.Left, b.Left...), append(r.Lost, b.Lost...)
		}
		r.Nodes = len(r.nodes)
		return errors.Join(errs...)
	}
	if !started && len(on.All) == 1 { // restoring failed on the only host, so start the former nodes again
		return errors.Join(errs[0], r.startFormer(ctx))
	}
	return r.restartAfterUndo(ctx, all.err, errs)
}

// startRestored starts the nodes. If that fails, prove stops them, so that their former state can be
// restored.
func (r *restoreOp) startRestored(ctx context.Context) error {
	err := r.account.CarryOut(ctx, r.Session.Watcher, r.fleet, r.startSteps())
	if err != nil {
		err = errors.Join(err, r.account.CarryOut(context.WithoutCancel(ctx), r.Session.Watcher, r.fleet,
			r.stopRestoredSteps()))
	}
	return err
}

// restartAfterUndo starts the former nodes again, if all hosts have restored their former state.
func (r *restoreOp) restartAfterUndo(ctx context.Context, why error, errs []error) error {
	var left error
	for _, err := range errs {
		if err != nil && !problem.Is(err, problem.Undone) && !errors.Is(err, why) {
			left = errors.Join(left, err)
		}
	}
	if left == nil {
		left = r.startFormer(ctx)
	}
	if left != nil {
		return problem.New(problem.Left, "%s was not restored, and the previous state could not be recovered", r.What).
			Because(errors.Join(why, left)).Try("orrery snapshot restore %s", r.from.ID)
	}
	return problem.New(problem.Undone, "%s was not restored; the previous state was restored", r.What).Because(why)
}

func (r *restoreOp) stopSteps() []*plan.Step {
	var steps []*plan.Step
	for _, n := range r.ran {
		steps = append(steps, &plan.Step{Kind: plan.StopNode, Host: n.host, Subject: n.Name, Old: &n.Node.Node,
			Restarts: true})
	}
	return steps
}

// stopRestoredSteps returns the steps that end nodes whose state is discarded. A node that writes to
// hardware of its host is shut down cleanly, because what it has written there remains.
func (r *restoreOp) stopRestoredSteps() []*plan.Step {
	var steps []*plan.Step
	for _, n := range r.nodes {
		kind := plan.KillNode
		if n.Record.KeepsHardware() {
			kind = plan.StopNode
		}
		steps = append(steps, &plan.Step{Kind: kind, Host: n.host, Subject: n.Record.Name, Old: &n.Record.Node})
	}
	return steps
}

// startSteps returns the steps that start the nodes that ran when the snapshot was taken. Nodes that
// were whole then and are still declared are checked, too.
func (r *restoreOp) startSteps() []*plan.Step {
	var steps []*plan.Step
	for _, n := range r.nodes {
		if !n.Running {
			continue
		}
		steps = append(steps, &plan.Step{Kind: plan.StartNode, Host: n.host, Subject: n.Record.Name, Node: &n.Record.Node})
		if _, declared := r.site.Node(n.Record.Name); declared && n.Record.Configured {
			steps = append(steps, &plan.Step{Kind: plan.CheckNode, Host: n.host, Subject: n.Record.Name, Node: &n.Record.Node,
				Needs: []int{len(steps) - 1}})
		}
	}
	return steps
}

func (r *restoreOp) startFormer(ctx context.Context) error {
	var steps []*plan.Step
	for _, n := range r.ran {
		steps = append(steps, &plan.Step{Kind: plan.StartNode, Host: n.host, Subject: n.Name, Node: &n.Node.Node})
	}
	return r.account.CarryOut(context.WithoutCancel(ctx), r.Session.Watcher, r.fleet, steps)
}
