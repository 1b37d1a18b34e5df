package control

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"orrery/internal/apply"
	"orrery/internal/backup"
	"orrery/internal/control/hosts"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// A restore first stages each host's part of the backup in a directory that nothing else uses
// (package backups). Until all hosts have done so, nothing has been changed. From then on, any up
// of the site completes the restore, without the backup. It takes down the existing nodes and moves
// the parts into place. When it creates a node, it also restores that node's data.

// RestoreOptions say what is restored from a backup, and where.
type RestoreOptions struct {
	// the site directory to write, or "" for one named after the site (for a twin, one in its
	// state)
	Dir         string
	To          string // the name of a twin to create from the backup
	Replace     bool   // replace the site on its hosts, including its data
	TrustLayers bool   // import the layers of the backup into the store
	Identity    string // a file with an age secret key, for the secrets
	Passphrase  string // a file with a passphrase, for the secrets
	Parallel    int    // maximum number of concurrent steps, or 0 for DefaultParallel
}

// Restored is the result of a restore.
type Restored struct {
	Site  *site.Site
	Title string   // of the backup
	Dir   string   // the site directory
	Nodes []string // nodes that are in the backup, or none if it has all nodes of the site
}

// A restoreOp is a restore whose parts the hosts have staged. It is part of a job that brings the
// site up.
type restoreOp struct {
	*Job
	part  *observe.RestoreProgress   // the part of the host that has advanced furthest
	parts []*observe.RestoreProgress // in the order of the hosts
}

// restoreOf returns the restore whose parts hosts have staged, or nil.
func (j *Job) restoreOf(seen []observe.Host) *restoreOp {
	r := &restoreOp{Job: j}
	for i := range j.Hosts.All {
		p := seen[i].Restoring
		r.parts = append(r.parts, p)
		if p != nil && (r.part == nil || p.Going && !r.part.Going) {
			r.part = p
		}
	}
	if r.part == nil {
		return nil
	}
	return r
}

// advanceRestore advances a restore until nodes can be created, if all hosts have staged their
// parts. If not all have, and the restore has not changed an existing site yet, advanceRestore
// removes the parts. It returns the state of the hosts after that.
func (j *Job) advanceRestore(ctx context.Context, seen []observe.Host) ([]observe.Host, error) {
	r := j.restoreOf(seen)
	if !j.Restores || r == nil {
		return seen, nil
	}
	whole, over, err := r.allStaged()
	if err != nil {
		return nil, err
	}
	if len(over) > 0 {
		r.Session.Notice(r.key(), "host %s reports that it completed the restore before; its data is not changed",
			humanize.List(over, 12))
		return seen, nil
	}
	switch {
	case whole:
		err = r.replaceData(ctx, seen)
	case r.Backup != "":
		err = problem.New(problem.Surprise, "not all hosts have their part of this backup").Try("run the same command again")
	case r.part.Untouched() && len(r.Hosts.Unknown) == 0:
		r.Session.Notice(r.key(), "a restore of %s was interrupted before it changed anything; its staged data is removed",
			r.key())
		err = r.advance(ctx, backup.StepDrop)
	// The restore has changed nothing. If there were no nodes before, the job must not create nodes
	// without their restored data.
	default:
		return seen, nil
	}
	if err != nil {
		return nil, err
	}
	return r.Session.Observe(ctx, r.Hosts)
}

func (r *restoreOp) key() string { return r.Site.Key() }

// allStaged reports whether all hosts have staged their parts, except those left out when the restore
// began. Over lists hosts that no longer have a part, although all others have put theirs in place.
func (r *restoreOp) allStaged() (allStaged bool, over []string, err error) {
	placed, apart := true, false
	for i, h := range r.Hosts.All {
		switch p := r.parts[i]; {
		case p == nil && slices.Contains(r.part.Without, h.Name):
		case p == nil:
			over = append(over, h.Name)
		default:
			placed, apart = placed && p.Placed, apart || p.ID != r.part.ID || !p.Staged
		}
	}
	silent := slices.DeleteFunc(slices.Clone(r.Hosts.Unknown),
		func(name string) bool { return slices.Contains(r.part.Without, name) })
	switch {
	case r.part.Going && len(silent) > 0:
		return false, nil, problem.New(problem.Left, "a restore of %s was interrupted, and host %s has a part of it", r.key(),
			silent[0]).At(r.part.From).
			Try("bring %s back and run the same command without --without; %s", silent[0], hosts.RemoveFromSiteHint)
	case r.Backup != "" && r.part.ID != r.Backup, r.part.Going && apart:
		return false, nil, problem.New(problem.Left, "another restore of %s was interrupted", r.key()).
			Try("orrery restore %s", r.part.From)
	case len(over) > 0 && placed:
		return false, over, nil
	case r.part.Going && len(over) > 0:
		return false, nil, problem.New(problem.Surprise, "host %s has no part of the interrupted restore of %s",
			humanize.List(over, 12), r.key()).
			Try("orrery restore %s", r.part.From)
	}
	return !apart && len(over)+len(silent) == 0, nil, nil
}

// replaceData takes down the existing nodes and makes all hosts put their parts in place.
func (r *restoreOp) replaceData(ctx context.Context, seen []observe.Host) error {
	if r.Backup == "" {
		r.Session.Notice(r.key(), "a restore of %s from %s was interrupted; it is completed first", r.key(),
			r.part.From)
	}
	if !r.part.Going && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := r.Do.Begin(ctx); err != nil {
		return err
	}
	if err := r.advance(ctx, backup.StepStart); err != nil {
		return err
	}
	if slices.ContainsFunc(r.parts, func(p *observe.RestoreProgress) bool { return p != nil && p.Clears }) {
		if err := r.clear(ctx, seen); err != nil {
			return err
		}
	}
	if err := r.advance(ctx, backup.StepPlace); err != nil {
		return err
	}
	r.Hosts.InvalidateLive() // they still have the releases that were live when this run began
	return r.Session.Connector(r.Site).Releases(r.Hosts).LoadLive(ctx)
}

// clear takes down the existing nodes, with their data. If a host is left out, it takes down only
// the nodes that will be restored. No host puts its part in place before all hosts have done this.
func (r *restoreOp) clear(ctx context.Context, seen []observe.Host) error {
	goal := plan.Goal{Volumes: true}
	if len(r.part.Without) > 0 {
		goal.Nodes = map[string]bool{}
		for _, p := range r.parts {
			for _, name := range p.PendingNodes() {
				goal.Nodes[name] = true
			}
		}
	}
	p := plan.Down(r.Site, seen, goal)
	if err := runJournaled(ctx, r.Session, r.Hosts, func(account *JournalWriter) error {
		return account.CarryOut(ctx, r.Session.Watcher, r.Hosts, p.Steps)
	}); err != nil {
		return err
	}
	return r.advance(ctx, backup.StepClear)
}

// advance makes each host that has a part carry out one step of the restore.
func (r *restoreOp) advance(ctx context.Context, to string) error {
	return r.Hosts.ForEach(func(i int, h *apply.HostClient) error {
		if r.parts[i] == nil {
			return nil
		}
		_, err := h.Backups.AdvanceRestore(ctx, r.parts[i].ID, to)
		return err
	})
}

// endRestore makes the hosts remove what is left of a restore, once all nodes of the site have
// their restored data.
func (j *Job) endRestore(ctx context.Context, seen []observe.Host) error {
	if !j.Restores || j.restoreOf(seen) == nil {
		return nil
	}
	var once sync.Once
	return j.Hosts.ForEach(func(_ int, h *apply.HostClient) error {
		part, err := h.Backups.Restoring(ctx)
		if err != nil || part == nil || !part.Placed {
			return err
		}
		nodes, err := h.Nodes.List(ctx)
		if err != nil {
			return err
		}
		waits := func(name string) bool { // an instance of any release counts as present
			_, declared := j.Site.Node(name)
			return declared && !slices.ContainsFunc(nodes, func(n observe.Node) bool { return n.Name == name })
		}
		if slices.ContainsFunc(part.Nodes, waits) {
			return nil // the next up continues the restore
		}
		told, err := h.Backups.AdvanceRestore(ctx, part.ID, backup.StepFinish)
		for _, line := range told {
			if !h.Local() {
				line = fmt.Sprintf("host %s: %s", h.Name, line)
			}
			j.Session.Notice(j.Site.Key(), "%s", line)
		}
		if !part.Opened {
			once.Do(func() {
				j.Session.Notice(j.Site.Key(),
					"generated secrets and SSH host keys were replaced, and roles with secrets were applied again; data created with the former secrets may not accept the new ones")
			})
		}
		return err
	})
}

// checkUnfinished returns an error if a plan would create or start nodes without their data because the
// restore of the site was interrupted.
func (j *Job) checkUnfinished(seen []observe.Host, p *plan.Plan) error {
	if j.Restores {
		return nil
	}
	for i := range seen {
		r := seen[i].Restoring
		if r == nil || r.Untouched() {
			continue
		}
		lacks := func(s *plan.Step) bool {
			return (s.Kind == plan.CreateNode || s.Kind == plan.StartNode) && (!r.Placed || slices.Contains(r.Nodes, s.Subject))
		}
		if slices.ContainsFunc(p.Steps, lacks) {
			return hosts.UnfinishedRestoreError(j.Site, &seen[i])
		}
	}
	return nil
}
