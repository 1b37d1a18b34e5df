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

// StageOptions say what is staged, and how.
type StageOptions struct {
	Release  int
	GiveUp   bool // also what rollback returns to
	Parallel int  // most steps under way at once; 0: DefaultParallel
}

// Staged is what came of staging.
type Staged struct {
	Result *apply.Result // nil: there was nothing to do
	Spared []string      // nodes that were left alone, because rollback returns to them
	Left   []string      // what is not in the copies of volumes, and why
}

// Stage makes a release beside what is live, and proves it in quarantine.
func Stage(ctx context.Context, c *control.Session, s *site.Site, selectors []string, o StageOptions) (*Staged, error) {
	if o.Release == 0 {
		return nil, problem.New(problem.Usage, "you can only stage a release").Try("declare it as a release: [release.700]")
	}
	staged, err := quarantine(c, s, o.Release)
	if err != nil {
		return nil, err
	}
	chosen, err := control.Choose(staged, selectors)
	if err != nil {
		return nil, err
	}
	if err := c.AllowedOn(s); err != nil {
		return nil, err
	}
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	f.Use(staged)
	goal, end := plan.Goal{Nodes: chosen}, &Staged{}
	j := &control.Job{Session: c, Site: staged, Base: s, Hosts: f, Parallel: o.Parallel,
		Before: func() error {
			if o.GiveUp {
				if err := giveUp(ctx, f, o.Release, goal); err != nil {
					return err
				}
			}
			if f.Site() != staged { // of the copy that is kept already
				return nil
			}
			return keepRelease(ctx, c, f, s, staged, o.Release)
		},
		Plan: func(hosts []observe.Host) (*plan.Plan, error) {
			if o.GiveUp {
				hosts = slices.Clone(hosts)
				for i := range hosts {
					hosts[i].Releases = release.GiveUp(hosts[i].Releases, o.Release, goal)
				}
			}
			end.Spared = release.Spared(staged, hosts, goal)
			p, of, err := release.Stage(staged, stagedBefore(ctx, c, f, s, o.Release), hosts, goal)
			if err == nil {
				f.Use(of)
			}
			return p, err
		},
	}
	end.Result, err = j.Run(ctx)
	var silent error
	for _, h := range f.All {
		left, err := h.Runs.SkippedFiles(ctx)
		end.Left, silent = append(end.Left, left...), errors.Join(silent, err)
	}
	return end, cmp.Or(err, silent) // a host that did not stage it need not say what it left out
}

// giveUp takes down that rollback returns to a release no longer.
func giveUp(ctx context.Context, f *apply.Fleet, number int, goal plan.Goal) error {
	r, err := f.ReadReleases(ctx)
	if err != nil {
		return err
	}
	return f.WriteReleases(release.GiveUp(r, number, goal))
}

// keepRelease lets the hosts keep a copy of the site directory from which a release is staged.
func keepRelease(ctx context.Context, c *control.Session, f *apply.Fleet, s, staged *site.Site, number int) error {
	return c.Call(s).Keep(ctx, f, staged, number, control.Who())
}

// releaseOf gives the site as a release makes it that was staged.
func releaseOf(ctx context.Context, c *control.Session, f *apply.Fleet, s *site.Site, number int) (*site.Site, error) {
	return c.Call(s).Release(ctx, f, number)
}

// stagedBefore gives the site of a release's quarantine as it was staged before, or nil if it was not, or that cannot be read.
func stagedBefore(ctx context.Context, c *control.Session, f *apply.Fleet, s *site.Site, number int) *site.Site {
	made, err := releaseOf(ctx, c, f, s, number)
	if err != nil {
		return nil
	}
	staged := *made
	staged.Stage = number
	return &staged
}

// Declared returns a release as the site directory makes it now.
func Declared(c *control.Session, s *site.Site, number int) (*site.Site, error) {
	if s.Original == nil {
		return twin.Release(s, number)
	}
	return c.AsTwin(s.Original, s.Twin, number)
}

// quarantine returns the site of a release's quarantine.
func quarantine(c *control.Session, s *site.Site, number int) (*site.Site, error) {
	made, err := Declared(c, s, number)
	if err != nil || number == 0 {
		return made, err
	}
	staged := *made
	staged.Stage = number
	return &staged, nil
}
