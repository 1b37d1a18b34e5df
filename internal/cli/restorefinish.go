package cli

import (
	"context"
	"errors"
	"fmt"

	"orrery/internal/backup"
	"orrery/internal/image"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// interrupted gives the restore of a site that was interrupted; nil: none was, or it is not for us to see.
func (a *app) interrupted(s *site.Site) (*backup.Restore, error) {
	return backup.Interrupted(a.dirs, image.Open(a.dirs.State), s.Key())
}

// finishRestore brings a restore that was interrupted to its end, if the site had been touched; if not, what was laid down goes. It gives the restore that it has
// tried to bring to its end, if there was one. Of the site nothing but its name and twin need be known.
func (a *app) finishRestore(ctx context.Context, s *site.Site) (*backup.Restore, error) {
	if needRoot() != nil {
		return nil, nil // whoever needs root says so
	}
	from, err := a.interrupted(s)
	if err != nil || from == nil {
		return nil, err
	}
	lock, err := a.takeRestoreLock(s.Key())
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	if err := a.mayChange(s); err != nil {
		return nil, err
	}
	if from, err = a.interrupted(s); err != nil || from == nil { // it may have come to its end
		return nil, err
	}
	switch {
	case from.Staged():
		fmt.Fprintf(a.err, "orrery: a restore of %s from %s was interrupted; it is brought to its end first.\n", s.Key(), from.Title)
		r := &restoration{app: a, name: s.Name, twin: s.Twin, from: from, o: restoreOptions{replace: from.Replace, parallel: defaultParallel()}}
		return from, r.place(ctx)
	case from.Harmless():
		fmt.Fprintf(a.err, "orrery: a restore of %s was interrupted before it had touched anything; what it had laid down is removed.\n", s.Key())
		return nil, from.Clear()
	}
	return nil, nil // there was no site, and not all of it is laid down: whoever makes nodes is refused
}

// restoreFirst brings an interrupted restore to its end before a site is brought up. Over: that has brought it up, from another directory than the one that is meant.
func (a *app) restoreFirst(ctx context.Context, s *site.Site) (over bool, err error) {
	from, err := a.finishRestore(ctx, s)
	if err != nil || from == nil {
		return false, err
	}
	dir, err := a.absolute()
	if err != nil || dir == from.SiteDir {
		return false, err
	}
	fmt.Fprintf(a.err, "orrery: %s is up from %s, and not from %s, where this command was given.\n", s.Key(), from.SiteDir, dir)
	return true, nil
}

// resumeRestored brings up a site whose restore was interrupted. If that cannot come to its end, nodes that it does not concern come up all the same.
func (a *app) resumeRestored(ctx context.Context, m marker) error {
	from, err := a.finishRestore(ctx, &site.Site{Name: m.Site, Twin: m.Twin})
	if from != nil {
		a.siteDir = from.SiteDir
	}
	if err != nil && (from == nil || !from.Placed()) {
		return err
	}
	s, failed := a.load()
	if failed != nil {
		return errors.Join(err, failed)
	}
	var others []string
	if err != nil {
		if others = notIn(from, s); len(others) == 0 {
			return err
		}
	}
	failed = a.up(ctx, s, others, manner{parallel: defaultParallel()})
	return errors.Join(err, failed)
}

// notIn gives the nodes of a site that are not in a backup.
func notIn(from *backup.Restore, s *site.Site) []string {
	in := map[string]bool{}
	for i := range from.Manifest.Nodes {
		in[from.Manifest.Nodes[i].Name] = true
	}
	var names []string
	for _, n := range s.Nodes {
		if !in[n.Name] {
			names = append(names, n.Name)
		}
	}
	return names
}

// unfinished refuses to bring up nodes that would lack what they had written, because their restore was interrupted.
func (j *job) unfinished(p *plan.Plan) error {
	if j.restores {
		return nil
	}
	from, err := j.interrupted(j.site)
	if err != nil || from == nil {
		return err
	}
	for _, step := range p.Steps {
		if (step.Kind == plan.CreateNode || step.Kind == plan.StartNode) && from.Waits(step.Subject) {
			try := "run the same orrery restore again, or orrery down --volumes to begin anew"
			if from.Staged() {
				try = "orrery up brings it to its end"
			}
			return problem.New(problem.Left, "a restore of %s was interrupted: its nodes would lack what they had written", j.site.Key()).At(backup.Aside(j.dirs, j.site.Key())).
				Try("%s", try)
		}
	}
	return nil
}
