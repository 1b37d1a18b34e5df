// Package snapshots takes the state of nodes at one moment, and restores it.
package snapshots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/snapshot"
	"orrery/internal/text/humanize"
)

// Extras say what to include in a snapshot beside the files of nodes.
type Extras struct {
	Memory bool // the memory of virtual machines

	scheduled bool // see TakeDeclared
}

// Take takes a snapshot of the selected nodes, or of all, at the same moment on all hosts.
func Take(ctx context.Context, c *control.Session, s *site.Site, selectors []string, with Extras) (*Snapshot, error) {
	f, chosen, err := control.SelectedHosts(ctx, c, s, selectors)
	if err != nil {
		return nil, err
	}
	t := &takeOp{Session: c, site: s, fleet: f, of: apply.SnapshotRequest{Who: control.UserName(), Memory: with.Memory,
		Scheduled: with.scheduled}}
	err = c.RunLocked(ctx, s, f, func(*control.JournalWriter) error {
		all, err := openSnapshots(ctx, f)
		if err != nil {
			return err
		}
		if err := t.selectNodes(ctx, chosen); err != nil {
			return err
		}
		t.of.ID = freeID(all)
		return t.run(ctx)
	})
	if err != nil {
		return nil, err
	}
	return mergeParts(f, t.parts), nil
}

// TakeDeclared takes a snapshot of all nodes as the site file declares, and removes those that it
// does not keep. It removes only snapshots that were taken in this way.
func TakeDeclared(ctx context.Context, c *control.Session, s *site.Site) (*Snapshot, error) {
	taken, err := Take(ctx, c, s, nil, Extras{scheduled: true})
	if err != nil {
		return nil, err
	}
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return taken, err
	}
	return taken, c.RunLocked(ctx, s, f, func(*control.JournalWriter) error {
		all, err := openSnapshots(ctx, f)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(s *Snapshot) bool { return !s.Scheduled })
		for _, old := range all[:max(0, len(all)-s.Snapshot.Keep)] {
			if err := f.ForEach(func(_ int, h *apply.HostClient) error { return h.Snapshots.Remove(ctx, old.ID) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// A takeOp takes one snapshot.
type takeOp struct {
	Session *control.Session
	site    *site.Site
	fleet   *apply.Fleet
	of      apply.SnapshotRequest
	on      *apply.Fleet // hosts that have a part
	nodes   [][]int      // on each of these hosts
	parts   map[string]*snapshot.Snapshot
}

// selectNodes finds the hosts of the nodes.
func (t *takeOp) selectNodes(ctx context.Context, chosen map[string]bool) error {
	seen, err := t.fleet.Observe(ctx)
	if err != nil {
		return err
	}
	t.on = &apply.Fleet{}
	for i, h := range t.fleet.All {
		var ids []int
		for j := range seen[i].Nodes {
			n := &seen[i].Nodes[j]
			if n.State != observe.Broken && control.InSelectedRelease(t.Session, n) && (chosen == nil || chosen[n.Name]) {
				ids = append(ids, n.ID)
			}
		}
		if len(ids) > 0 {
			t.on.All, t.nodes = append(t.on.All, h), append(t.nodes, ids)
		}
	}
	if len(t.on.All) == 0 {
		return problem.New(problem.Failed, "none of these nodes of %s is on this host", t.site.Name).Try("orrery up")
	}
	return nil
}

// run takes the parts of all hosts. Either all parts are kept or none.
func (t *takeOp) run(ctx context.Context) error {
	if err := t.on.MeasureClocks(ctx); err != nil {
		return err
	}
	names := t.on.Names()
	at := NewCoordinator(names)
	if len(t.fleet.All)+len(t.fleet.Unknown) > 1 {
		at.hosts = names
	}
	taken, errs := make([]*snapshot.Snapshot, len(t.on.All)), make([]error, len(t.on.All))
	_ = t.on.ForEach(func(i int, h *apply.HostClient) error {
		of := t.of
		of.Nodes = t.nodes[i]
		if taken[i], errs[i] = h.Snapshots.Capture(ctx, of, at.ForHost(h)); errs[i] != nil {
			at.Fail(errs[i])
		}
		return nil
	})
	t.parts = map[string]*snapshot.Snapshot{}
	for i, h := range t.on.All {
		if errs[i] == nil {
			t.parts[h.Name] = taken[i]
		}
	}
	ctx = context.WithoutCancel(ctx) // a half-kept snapshot is worse than a delay
	if len(t.parts) < len(taken) {
		err := explainFailure(at, errs)
		return errors.Join(err, t.removeParts(ctx))
	}
	return t.commitParts(ctx)
}

// explainFailure returns why a snapshot was not taken, and which nodes are still frozen.
func explainFailure(at *Coordinator, errs []error) error {
	why := at.went.err
	if why == nil { // all nodes continued, and a later step failed
		return errors.Join(errs...)
	}
	all := why
	for _, err := range errs {
		for _, p := range problem.All(err) {
			if p.Kind == problem.Left && !errors.Is(why, p) {
				all = errors.Join(all, p)
			}
		}
	}
	return all
}

// commitParts keeps the ready parts on all hosts. Once one host has kept its part, the others will, either
// now or in a later run.
func (t *takeOp) commitParts(ctx context.Context) error {
	one := t.on.All[0]
	if err := one.Snapshots.Keep(ctx, t.of.ID); err != nil {
		return errors.Join(err, t.removeParts(ctx))
	}
	others := &apply.Fleet{All: t.on.All[1:]}
	err := others.ForEach(func(_ int, h *apply.HostClient) error { return h.Snapshots.Keep(ctx, t.of.ID) })
	if err != nil {
		return problem.New(problem.Left, "snapshot %s was taken, but is not yet stored on all hosts", t.of.ID).Because(err).
			Try("when all hosts answer, the next orrery snapshot completes it")
	}
	return nil
}

// removeParts removes the ready parts of the hosts.
func (t *takeOp) removeParts(ctx context.Context) error {
	return t.on.ForEach(func(_ int, h *apply.HostClient) error {
		if t.parts[h.Name] == nil {
			return nil
		}
		err := h.Snapshots.Remove(ctx, t.of.ID)
		if err != nil {
			err = problem.New(problem.Left, "host %s still has its part of snapshot %s", h.Name, t.of.ID).Because(err).
				Try("when it answers, the next orrery snapshot removes it")
		}
		return err
	})
}

// freeID returns an ID that no snapshot has.
func freeID(all []*Snapshot) string {
	id := snapshot.NewID(time.Now())
	free := id
	for n := 2; slices.ContainsFunc(all, func(s *Snapshot) bool { return s.ID == free }); n++ {
		free = id + "-" + strconv.Itoa(n)
	}
	return free
}

// Remove deletes snapshots permanently.
func Remove(ctx context.Context, c *control.Session, s *site.Site, ids []string) error {
	f, _, err := control.SelectedHosts(ctx, c, s, nil)
	if err != nil {
		return err
	}
	return c.RunLocked(ctx, s, f, func(*control.JournalWriter) error {
		all, err := openSnapshots(ctx, f)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if _, err := find(all, s, id); err != nil {
				return err
			}
		}
		if _, err := c.AskProduction(s, fmt.Sprintf("%s would be deleted permanently.",
			humanize.Plural(len(ids), "snapshot"))); err != nil {
			return err
		}
		for _, id := range ids {
			if err := f.ForEach(func(_ int, h *apply.HostClient) error { return h.Snapshots.Remove(ctx, id) }); err != nil {
				return err
			}
		}
		return nil
	})
}
