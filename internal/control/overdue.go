package control

import (
	"context"
	"slices"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control/hosts"
	"orrery/internal/control/unattended"
	"orrery/internal/host"
	"orrery/internal/host/schedule"
	"orrery/internal/host/twins"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// atWork gives a session that is about what is overdue, and does not ask what else is.
func (c *Session) atWork() *Session {
	b := *c
	b.Late = true
	return &b
}

// catchUp does what was to happen by itself and did not, because the process that waited for it was killed: whoever changes a site does it first.
// What goes wrong with it is said, and keeps nobody from anything.
func (c *Session) catchUp(ctx context.Context, s *site.Site, f *apply.Fleet) error {
	if c.Late {
		return nil
	}
	if err := c.AllowedOn(s); err != nil {
		return err
	}
	for _, r := range c.forgottenTwins(punctual) {
		if err := c.endForgotten(ctx, r); err != nil {
			c.trouble(r.Key(), err)
			continue
		}
		if r.Key() == s.Key() && len(r.Hosts) < 2 {
			return problem.New(problem.Surprise, "twin %s expired at %s; it is gone", s.Twin, phrase.Clock(r.Expires)).At(s.Key()).
				Try("orrery twin create makes another")
		}
	}
	if r, known := c.Known[s.Key()]; known && !r.Expires.IsZero() && time.Now().After(r.Expires) {
		return problem.New(problem.Surprise, "twin %s expired at %s; each of its hosts ends what it has of it", s.Twin, phrase.Clock(r.Expires)).At(s.Key()).
			Try("orrery twin destroy %s ends the rest at once", s.Twin)
	}
	if !f.Own() { // its hosts watch over a trial by themselves
		if hosts.Near(s) {
			unattended.Attend(ctx, c.machine(), c.Dirs, c.trouble)
		}
		return nil
	}
	r, err := f.ReadReleases(ctx)
	if err != nil || r.Trial == nil || c.watched(s) {
		return err
	}
	if r.Trial.Boot != host.Now().Boot {
		c.notice(s.Key(), "%s: nobody has watched over the trial of release %d since the host rebooted (orrery up or orrery resume goes on with it)",
			s.Key(), r.Trial.Release)
		return nil // its nodes come up first
	}
	if err := c.atWork().resumeTrial(ctx, s); err != nil {
		c.trouble(s.Key(), err)
	}
	return c.Call(s).LearnLive(ctx, f)
}

// punctual is how late whoever waits may be: it is at work then.
const punctual = 15 * time.Second

// forgottenTwins gives the twins that have an end for which nobody waits, but not those whose time was over just now: for so long whoever
// has waited may be at work.
func (c *Session) forgottenTwins(just time.Duration) []twin.Record {
	waiting, err := c.machine().Waiting()
	if err != nil || c.Allowed() != nil { // nobody else may read who waits
		return nil
	}
	return slices.DeleteFunc(c.Twins(), func(r twin.Record) bool {
		over := time.Since(r.Expires)
		return r.Expires.IsZero() || over >= 0 && over < just ||
			slices.ContainsFunc(waiting, func(w schedule.Pending) bool { return w.Name == twins.ExpiryName(r.Key()) })
	})
}

// WaitAgain lets somebody wait for the end of each twin for which nobody does, or end it now if its time is over, and watch over each trial: a host does that when somebody reaches it from another one.
func (c *Session) WaitAgain(ctx context.Context) {
	for _, r := range c.forgottenTwins(punctual) {
		if err := c.expire(ctx, r); err != nil {
			c.trouble(r.Key(), err)
		}
	}
	unattended.Attend(ctx, c.machine(), c.Dirs, c.trouble)
}

// Forgotten says of a twin that nobody sees to its end, if so.
func (c *Session) Forgotten(key string) (r twin.Record, so bool) {
	all := c.forgottenTwins(punctual)
	i := slices.IndexFunc(all, func(r twin.Record) bool { return r.Key() == key })
	if i < 0 {
		return r, false
	}
	return all[i], true
}

// endForgotten destroys a twin whose time is over, and lets somebody wait for the end of another.
func (c *Session) endForgotten(ctx context.Context, r twin.Record) error {
	b := c.atWork()
	b.SiteDir, b.Twin, b.Force = r.Dir, r.Options.Name, true
	if time.Now().Before(r.Expires) {
		return b.expire(ctx, r)
	}
	c.notice(r.Key(), "twin %s expired at %s, and nobody destroyed it; it is destroyed now", r.Key(), phrase.Clock(r.Expires))
	return b.EndTwin(ctx, r)
}

// resumeTrial lets a trial be watched again, or ends it if its time is over: nobody has seen then whether the checks held.
func (c *Session) resumeTrial(ctx context.Context, s *site.Site) error {
	f, err := c.Bare(ctx, s)
	if err != nil || !f.Own() { // other hosts watch over a trial by themselves
		return err
	}
	r, err := f.ReadReleases(ctx)
	if err != nil || r.Trial == nil || r.Switch != nil || c.watched(s) { // somebody switches now, or will be told that a switch was cut short
		return err
	}
	now := host.Now()
	if left := r.Trial.Left(now); left > 0 {
		return c.watchAgain(ctx, s, now, left)
	}
	t, err := c.newChange(ctx, s)
	if err != nil || t.before.Trial == nil {
		return err
	}
	err = c.goBack(ctx, s, t, "its time was over while nobody watched over it")
	if problem.Exit(err) == int(problem.Reverted) {
		c.trouble(s.Key(), err) // that is how it was to end
		return nil
	}
	return err
}

// watchAgain lets a trial be watched that nobody watches. After a reboot, what is left of its time goes by the clock of this boot.
func (c *Session) watchAgain(ctx context.Context, s *site.Site, now observe.Moment, left time.Duration) error {
	f, err := c.Bare(ctx, s)
	if err != nil {
		return err
	}
	letGo, err := c.atWork().Hold(ctx, s, f)
	if err != nil {
		return err
	}
	r, err := f.ReadReleases(ctx)
	if err == nil && r.Trial != nil && r.Trial.Boot != now.Boot {
		r.Trial.Begin(now, left)
		err = f.WriteReleases(r)
	}
	letGo()
	if err != nil || r.Trial == nil {
		return err
	}
	c.TellTrial(s, r.Trial)
	return c.watchTrial(ctx, s)
}
