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

// A restore first has each host lay down its part, where nothing sees it (package backups). Until
// all have done so, nothing was touched. From then on, whoever brings the site up brings the
// restore to its end, without the backup: what was there is taken down, the parts are put in their
// place, and each node gets what it had when it is made.

// RestoreOptions say what of a backup is brought back, and where it goes.
type RestoreOptions struct {
	Dir         string // where the site directory goes; "": one with the site's name, and of a twin with its state
	To          string // the name of a twin that is made of it
	Replace     bool   // the site that is on its hosts goes, with its data
	TrustLayers bool   // layers in the backup come into the store
	Identity    string // a file with a secret key of age, for the secrets
	Passphrase  string // a file with a passphrase, for the secrets
	Parallel    int    // most steps under way at once; 0: DefaultParallel
}

// Restored is what came of a restore.
type Restored struct {
	Site  *site.Site
	Title string   // of the backup
	Dir   string   // the site directory
	Nodes []string // that were in the backup; none: all of the site
}

// A restoring is a restore of which hosts have parts, in a job that brings the site up.
type restoring struct {
	*Job
	part  *observe.Restoring   // the one that has come farthest
	parts []*observe.Restoring // by the places of the hosts
}

// restoringOf returns the restore of which hosts have parts, or nil.
func (j *Job) restoringOf(seen []observe.Host) *restoring {
	r := &restoring{Job: j}
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

// settleRestore brings a restore so far that nodes can be made, if all hosts have laid down their
// parts, and takes it back if it has touched nothing. It returns the hosts as they are then.
func (j *Job) settleRestore(ctx context.Context, seen []observe.Host) ([]observe.Host, error) {
	r := j.restoringOf(seen)
	if !j.Restores || r == nil {
		return seen, nil
	}
	whole, over, err := r.whole()
	if err != nil {
		return nil, err
	}
	if len(over) > 0 {
		r.Session.Notice(r.key(), "host %s says that the restore came to its end there before; what it has now stays as it is",
			humanize.List(over, 12))
		return seen, nil
	}
	switch {
	case whole:
		err = r.settle(ctx, seen)
	case r.Backup != "":
		err = problem.New(problem.Surprise, "not all hosts have their part of this backup").Try("run the same command again")
	case r.part.Untouched() && len(r.Hosts.Unknown) == 0:
		r.Session.Notice(r.key(), "a restore of %s was interrupted before it had touched anything; what it had laid down is removed",
			r.key())
		err = r.advance(ctx, backup.ToDrop)
	default: // it touched nothing; if there was nothing before, no node is made without what it had
		return seen, nil
	}
	if err != nil {
		return nil, err
	}
	return r.Session.Seen(ctx, r.Hosts)
}

func (r *restoring) key() string { return r.Site.Key() }

// whole reports whether all hosts have laid down their parts, but those that were left out when it
// began. Over are hosts that have none any more, while all others have put theirs in place.
func (r *restoring) whole() (whole bool, over []string, err error) {
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
		return false, nil, problem.New(problem.Left, "a restore of %s was interrupted of which host %s has a part", r.key(),
			silent[0]).At(r.part.From).
			Try("bring %s back and run the same command without --without; %s", silent[0], hosts.OutOfFile)
	case r.Backup != "" && r.part.ID != r.Backup, r.part.Going && apart:
		return false, nil, problem.New(problem.Left, "another restore of %s was interrupted", r.key()).
			Try("orrery restore %s", r.part.From)
	case len(over) > 0 && placed:
		return false, over, nil
	case r.part.Going && len(over) > 0:
		return false, nil, problem.New(problem.Surprise, "host %s has no part of the restore of %s that was interrupted",
			humanize.List(over, 12), r.key()).
			Try("orrery restore %s", r.part.From)
	}
	return !apart && len(over)+len(silent) == 0, nil, nil
}

// settle takes down what was there, and has all hosts put their parts in place.
func (r *restoring) settle(ctx context.Context, seen []observe.Host) error {
	if r.Backup == "" {
		r.Session.Notice(r.key(), "a restore of %s from %s was interrupted; it is brought to its end first", r.key(),
			r.part.From)
	}
	if !r.part.Going && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := r.Do.Begin(ctx); err != nil {
		return err
	}
	if err := r.advance(ctx, backup.ToGo); err != nil {
		return err
	}
	if slices.ContainsFunc(r.parts, func(p *observe.Restoring) bool { return p != nil && p.Clears }) {
		if err := r.clear(ctx, seen); err != nil {
			return err
		}
	}
	if err := r.advance(ctx, backup.ToPlace); err != nil {
		return err
	}
	r.Hosts.ForgetLive() // it read what was live when this run began
	return r.Session.Call(r.Site).Releases(r.Hosts).LearnLive(ctx)
}

// clear takes down what was there, with its data; while a host is left out, only of the nodes that
// come back. Until all hosts have done so, none puts anything in its place.
func (r *restoring) clear(ctx context.Context, seen []observe.Host) error {
	goal := plan.Goal{Volumes: true}
	if len(r.part.Without) > 0 {
		goal.Nodes = map[string]bool{}
		for _, p := range r.parts {
			for _, name := range p.Waiting() {
				goal.Nodes[name] = true
			}
		}
	}
	p := plan.Down(r.Site, seen, goal)
	if err := journalled(ctx, r.Session, r.Hosts, func(account *Account) error {
		return account.CarryOut(ctx, r.Session.Watcher, r.Hosts, p.Steps)
	}); err != nil {
		return err
	}
	return r.advance(ctx, backup.ToClear)
}

// advance has each host that has a part do a step of it.
func (r *restoring) advance(ctx context.Context, to string) error {
	return r.Hosts.Each(func(i int, h *apply.Steered) error {
		if r.parts[i] == nil {
			return nil
		}
		_, err := h.Backups.AdvanceRestore(ctx, r.parts[i].ID, to)
		return err
	})
}

// endRestore has hosts remove what is left of a restore once no node of the site waits for what it had.
func (j *Job) endRestore(ctx context.Context, seen []observe.Host) error {
	if !j.Restores || j.restoringOf(seen) == nil {
		return nil
	}
	var once sync.Once
	return j.Hosts.Each(func(_ int, h *apply.Steered) error {
		part, err := h.Backups.Restoring(ctx)
		if err != nil || part == nil || !part.Placed {
			return err
		}
		nodes, err := h.Nodes.List(ctx)
		if err != nil {
			return err
		}
		waits := func(name string) bool { // one of the name may be there, of another release
			_, declared := j.Site.Node(name)
			return declared && !slices.ContainsFunc(nodes, func(n observe.Node) bool { return n.Name == name })
		}
		if slices.ContainsFunc(part.Nodes, waits) {
			return nil // the next up goes on
		}
		told, err := h.Backups.AdvanceRestore(ctx, part.ID, backup.ToFinish)
		for _, line := range told {
			if !h.Local() {
				line = fmt.Sprintf("host %s: %s", h.Name, line)
			}
			j.Session.Notice(j.Site.Key(), "%s", line)
		}
		if !part.Opened {
			once.Do(func() {
				j.Session.Notice(j.Site.Key(),
					"generated secrets and SSH host keys were made anew, and roles that have secrets applied anew; data that was made with the former secrets may not accept them")
			})
		}
		return err
	})
}

// unfinished refuses to make or start nodes that would lack what they had, because their restore
// was interrupted.
func (j *Job) unfinished(seen []observe.Host, p *plan.Plan) error {
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
			return hosts.Unfinished(j.Site, &seen[i])
		}
	}
	return nil
}
