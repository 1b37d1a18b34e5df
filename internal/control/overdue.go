package control

import (
	"context"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control/unattended"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/site"
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
	for _, l := range c.lapses(ctx, unattended.Punctual) {
		if l.At.IsZero() && f.Own() {
			continue
		}
		if err := c.mend(ctx, &l); err != nil {
			c.trouble(l.Key, err)
		} else if l.Key == s.Key() && l.Overdue() && f.Own() {
			return problem.New(problem.Surprise, "twin %s expired at %s; it is gone", s.Twin, phrase.Clock(l.At)).At(s.Key()).
				Try("orrery twin create makes another")
		}
	}
	if r, known := c.Known[s.Key()]; known && !r.Expires.IsZero() && time.Now().After(r.Expires) {
		return problem.New(problem.Surprise, "twin %s expired at %s; each of its hosts ends what it has of it", s.Twin, phrase.Clock(r.Expires)).At(s.Key()).
			Try("orrery twin destroy %s ends the rest at once", s.Twin)
	}
	if !f.Own() { // its hosts watch over a trial by themselves
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

// lapses returns the plans of this machine for which nothing waits.
func (c *Session) lapses(ctx context.Context, just time.Duration) []unattended.Lapse {
	return unattended.Lapses(ctx, c.machine(), c.Dirs, just, c.trouble)
}

// mend carries out a plan that is overdue, and has another waited for.
func (c *Session) mend(ctx context.Context, l *unattended.Lapse) error {
	if l.Overdue() {
		return c.Unattended(l.Key).Run(ctx, l.Trigger, "")
	}
	return l.Mend(ctx, c.machine())
}

// WaitAgain has each plan of this machine waited for again for which nothing waits. A host does that when another one reaches it.
func (c *Session) WaitAgain(ctx context.Context) {
	for _, l := range c.lapses(ctx, unattended.Punctual) {
		if err := l.Mend(ctx, c.machine()); err != nil {
			c.trouble(l.Key, err)
		}
	}
}

// Forgotten returns when a twin expires, if nothing waits for that.
func (c *Session) Forgotten(key string) (at time.Time, so bool) {
	for _, l := range c.lapses(context.Background(), unattended.Punctual) {
		if l.Planned == (apply.Planned{Key: key, Trigger: apply.AtExpiry}) {
			return l.At, true
		}
	}
	return at, false
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
