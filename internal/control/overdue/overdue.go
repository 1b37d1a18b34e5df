// Package overdue does what was to happen by itself and did not, because the process that waited for it was killed, or did not outlive a reboot: twins
// end whose time is over, and trials of releases are watched again, or end.
package overdue

import (
	"context"
	"errors"
	"slices"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/control/releases"
	"orrery/internal/host"
	"orrery/internal/host/later"
	"orrery/internal/host/twins"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// Work is what a session asks before it changes a site.
type Work struct{}

// CatchUp does what is overdue before a site is changed.
func (Work) CatchUp(ctx context.Context, c *control.Session, s *site.Site, f *apply.Fleet) error {
	if err := c.AllowedOn(s); err != nil {
		return err
	}
	for _, r := range forgottenTwins(c, punctual) {
		if err := endForgotten(ctx, c, r); err != nil {
			c.Trouble(r.Key(), err)
			continue
		}
		if r.Key() == s.Key() && len(r.Hosts) < 2 {
			return problem.New(problem.Surprise, "twin %s expired at %s; it is gone", s.Twin, phrase.Clock(r.Expires)).At(s.Key()).
				Try("orrery twin create makes another")
		}
	}
	if r, known := c.Known.Twin(s.Key()); known && !r.Expires.IsZero() && time.Now().After(r.Expires) {
		return problem.New(problem.Surprise, "twin %s expired at %s; each of its hosts ends what it has of it", s.Twin, phrase.Clock(r.Expires)).At(s.Key()).
			Try("orrery twin destroy %s ends the rest at once", s.Twin)
	}
	if !f.Own() { // its hosts watch over a trial by themselves
		if hosts.Near(s) {
			hosts.WatchAgain(ctx, c.Local(), c.Dirs, c.Trouble)
		}
		return nil
	}
	r, err := f.ReadReleases(ctx)
	if err != nil || r.Trial == nil || releases.Watched(c, s) {
		return err
	}
	if r.Trial.Boot != host.Now().Boot {
		c.Notice(s.Key(), "%s: nobody has watched over the trial of release %d since the host rebooted (orrery up or orrery resume goes on with it)",
			s.Key(), r.Trial.Release)
		return nil // its nodes come up first
	}
	if err := releases.ResumeTrial(ctx, c.WithoutOverdue(), s); err != nil {
		c.Trouble(s.Key(), err)
	}
	return c.Call(s).LearnLive(ctx, f)
}

// punctual is how late whoever waits may be: it is at work then.
const punctual = 15 * time.Second

// forgottenTwins gives the twins that have an end for which nobody waits, but not those whose time was over just now: for so long whoever
// has waited may be at work.
func forgottenTwins(c *control.Session, just time.Duration) []twin.Record {
	waiting, err := c.Local().Waiting()
	if err != nil || c.Allowed() != nil { // nobody else may read who waits
		return nil
	}
	return slices.DeleteFunc(c.Register().Twins(), func(r twin.Record) bool {
		over := time.Since(r.Expires)
		return r.Expires.IsZero() || over >= 0 && over < just ||
			slices.ContainsFunc(waiting, func(w later.Waiting) bool { return w.Name == twins.ExpiryName(r.Key()) })
	})
}

// WaitAgain lets somebody wait for the end of each twin for which nobody does, or end it now if its time is over, and watch over each trial: a host does that when somebody reaches it from another one.
func WaitAgain(ctx context.Context, c *control.Session) {
	for _, r := range forgottenTwins(c, punctual) {
		if err := expire(ctx, c, r); err != nil {
			c.Trouble(r.Key(), err)
		}
	}
	hosts.WatchAgain(ctx, c.Local(), c.Dirs, c.Trouble)
}

// Forgotten says of a twin that nobody sees to its end, if so.
func Forgotten(c *control.Session, key string) (r twin.Record, so bool) {
	all := forgottenTwins(c, punctual)
	i := slices.IndexFunc(all, func(r twin.Record) bool { return r.Key() == key })
	if i < 0 {
		return r, false
	}
	return all[i], true
}

// endForgotten destroys a twin whose time is over, and lets somebody wait for the end of another.
func endForgotten(ctx context.Context, c *control.Session, r twin.Record) error {
	b := c.WithoutOverdue()
	b.SiteDir, b.Twin, b.Force = r.Dir, r.Options.Name, true
	if time.Now().Before(r.Expires) {
		return expire(ctx, b, r)
	}
	c.Notice(r.Key(), "twin %s expired at %s, and nobody destroyed it; it is destroyed now", r.Key(), phrase.Clock(r.Expires))
	return EndTwin(ctx, b, r)
}

// ResumeExpiries destroys the twins whose time is over, and sees to it that others are destroyed in their time: what waited for that
// did not outlive the reboot.
func ResumeExpiries(ctx context.Context, c *control.Session) error {
	var all error
	for _, r := range forgottenTwins(c, 0) {
		if err := endForgotten(ctx, c, r); err != nil {
			c.Trouble(r.Key(), err)
			all = errors.Join(all, problem.New(problem.Failed, "twin %s could not be ended on time", r.Key()).Try("orrery twin destroy %s", r.Options.Name))
		}
	}
	return all
}

// ResumeAlone brings up what this host has of sites on several hosts, each by what the host itself has on record, and gives their keys. Trials of them are watched again.
func ResumeAlone(ctx context.Context, c *control.Session) (keys []string, err error) {
	if err := c.Allowed(); err != nil {
		return nil, err
	}
	for _, key := range hosts.Boots(c.Dirs) {
		keys = append(keys, key)
		alone := &hosts.Alone{Machine: c.Local(), Dirs: c.Dirs, Key: key, Say: func(err error) { c.Trouble(key, err) }}
		made, failed := alone.Resume(ctx)
		if made != nil {
			c.Outcome(key, "%s", made)
		}
		if failed != nil {
			c.Trouble(key, failed)
			err = errors.Join(err, problem.New(problem.Kind(problem.Exit(failed)), "not all of site %s was brought up on this host", key).At(apply.BootPath(c.Dirs, key)))
		}
	}
	hosts.WatchAgain(ctx, c.Local(), c.Dirs, c.Trouble)
	return keys, err
}

// expire lets a twin be destroyed when its time is over.
func expire(ctx context.Context, c *control.Session, r twin.Record) error {
	return c.Local().Later(ctx, twins.Expiry(&r))
}

// EndTwin ends a twin. Its site file need not be readable any more: what is on the host tells what there is.
func EndTwin(ctx context.Context, c *control.Session, r twin.Record) error {
	s := &site.Site{Name: r.Site, Twin: r.Options.Name}
	f, err := c.Bare(ctx, s)
	if err != nil {
		return err
	}
	j := &control.Job{Session: c, Site: s, Hosts: f, Do: control.Steps(func(hosts []observe.Host) (*plan.Plan, error) {
		return plan.Down(s, hosts, plan.Goal{Volumes: true, Ending: c.Ending}), nil
	})}
	if _, err := j.Run(ctx); err != nil {
		return err
	}
	if err := c.Local().Cancel(twins.ExpiryName(r.Key())); err != nil {
		return err
	}
	if err := c.Note(&site.Site{Name: r.Site}, c.Command, "twin "+r.Options.Name+" ended"); err != nil {
		return err
	}
	// Last, because it is what shows that there is something to destroy.
	if err := c.Dirs.RemoveSite(r.Key()); err != nil {
		return err
	}
	c.Outcome(r.Key(), "Twin %s of %s is gone", r.Options.Name, r.Site)
	return nil
}
