package releases

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// StageOptions say which release to stage, and how.
type StageOptions struct {
	Release  int
	GiveUp   bool // also stage nodes that rollback returns to, and give up that rollback
	Parallel int  // maximum number of concurrent steps, or 0 for DefaultParallel
}

// Staged is the result of staging.
type Staged struct {
	Result *apply.Result // nil if there was nothing to do
	Spared []string      // nodes that were not staged, because rollback returns to them
	Left   []string      // what is missing in the copies of volumes, and why
}

// Stage creates a release beside the live one, and tests it in quarantine.
func Stage(ctx context.Context, c *control.Session, s *site.Site, selectors []string, o StageOptions) (*Staged, error) {
	if o.Release == 0 {
		return nil, problem.New(problem.Usage, "no release to stage").Try("declare one, such as [release.700]")
	}
	staged, err := quarantine(c, s, o.Release)
	if err != nil {
		return nil, err
	}
	chosen, err := control.SelectNodes(staged, selectors)
	if err != nil {
		return nil, err
	}
	if err := c.CheckAllowedOn(s); err != nil {
		return nil, err
	}
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	f.Views().Use(staged)
	t := &stageOp{Session: c, site: s, staged: staged, hosts: f, goal: plan.Goal{Nodes: chosen}, options: o}
	j := &control.Job{Session: c, Site: staged, Base: s, Hosts: f, Parallel: o.Parallel, Do: t}
	t.result.Result, err = j.Run(ctx)
	var silent error
	for _, h := range f.All {
		left, err := h.Runs.SkippedFiles(ctx)
		t.result.Left, silent = append(t.result.Left, left...), errors.Join(silent, err)
	}
	return &t.result, cmp.Or(err, silent) // a host that did not stage the release need not report what it left out
}

// A stageOp creates a release in quarantine.
type stageOp struct {
	control.Plain
	Session      *control.Session
	site, staged *site.Site // staged is the site of the quarantine
	hosts        *apply.Fleet
	goal         plan.Goal
	options      StageOptions
	result       Staged
}

func (t *stageOp) Plan(ctx context.Context, seen []observe.Host) (*plan.Plan, error) {
	if t.options.GiveUp {
		seen = slices.Clone(seen)
		for i := range seen {
			seen[i].Releases = release.AbandonRollback(seen[i].Releases, t.options.Release, t.goal)
		}
	}
	t.result.Spared = release.RollbackNodes(t.staged, seen, t.goal)
	p, of, err := release.Stage(t.staged, stagedBefore(ctx, t.Session, t.hosts, t.site, t.options.Release), seen, t.goal)
	if err == nil {
		t.hosts.Views().Use(of)
	}
	return p, err
}

// Begin makes the hosts store the site directory from which the release is staged.
func (t *stageOp) Begin(ctx context.Context) error {
	if t.options.GiveUp {
		if err := endRollback(ctx, t.hosts, t.options.Release, t.goal); err != nil {
			return err
		}
	}
	if t.hosts.Site() != t.staged { // staged again from the copy that is stored already
		return nil
	}
	return t.Session.Connector(t.site).Releases(t.hosts).StoreStaged(ctx, t.staged, t.options.Release, control.UserName())
}

// endRollback records that rollback no longer returns to a release.
func endRollback(ctx context.Context, f *apply.Fleet, number int, goal plan.Goal) error {
	r, err := f.Records().Read(ctx)
	if err != nil {
		return err
	}
	return f.Records().Write(ctx, release.AbandonRollback(r, number, goal))
}

// stagedBefore returns the site of a release's quarantine as it was staged before. It returns nil
// if the release was not staged, or if its copy cannot be read.
func stagedBefore(ctx context.Context, c *control.Session, f *apply.Fleet, s *site.Site, number int) *site.Site {
	made, err := c.Connector(s).Releases(f).Load(ctx, number)
	if err != nil {
		return nil
	}
	staged := *made
	staged.Stage = number
	return &staged
}

// DeclaredRelease returns the site as the current site directory defines it for a release.
func DeclaredRelease(c *control.Session, s *site.Site, number int) (*site.Site, error) {
	if s.Original == nil {
		return twin.Release(s, number)
	}
	return c.Register().AsTwin(s.Original, s.Twin, number)
}

// quarantine returns the site of a release's quarantine.
func quarantine(c *control.Session, s *site.Site, number int) (*site.Site, error) {
	made, err := DeclaredRelease(c, s, number)
	if err != nil || number == 0 {
		return made, err
	}
	staged := *made
	staged.Stage = number
	return &staged, nil
}
