package control

import (
	"context"
	"strings"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control/unattended"
	"orrery/internal/host"
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

// catchUp does what was to happen by itself and did not, because the process that waited for it was killed:
// whoever changes a site does it first. What goes wrong with it is said, and keeps nobody from anything.
func (c *Session) catchUp(ctx context.Context, s *site.Site, f *apply.Fleet) error {
	if c.Late {
		return nil
	}
	if err := c.AllowedOn(s); err != nil {
		return err
	}
	ended := false // a trial of the site
	for _, l := range c.lapses(ctx, unattended.Punctual) {
		switch err := c.mend(ctx, &l); {
		case err != nil:
			c.trouble(l.Key, err)
		case l.Key != s.Key() || !l.Overdue() || !f.Own():
		case l.Trigger == apply.AtExpiry:
			return problem.New(problem.Surprise, "twin %s expired at %s; it is gone", s.Twin, phrase.Clock(l.At)).At(s.Key()).
				Try("orrery twin create makes another")
		default:
			ended = true
		}
	}
	if r, known := c.Known[s.Key()]; known && !r.Expires.IsZero() && time.Now().After(r.Expires) {
		return problem.New(problem.Surprise, "twin %s expired at %s; each of its hosts ends what it has of it", s.Twin, phrase.Clock(r.Expires)).At(s.Key()).
			Try("orrery twin destroy %s ends the rest at once", s.Twin)
	}
	if !f.Own() {
		return nil
	}
	r, err := f.ReadReleases(ctx)
	if err == nil && r.Trial != nil && r.Trial.Boot != host.Now().Boot {
		c.notice(s.Key(), "%s: nobody has watched over the trial of release %d since the host rebooted (orrery up or orrery resume goes on with it)",
			s.Key(), r.Trial.Release)
		return nil // its nodes come up first
	}
	if err != nil || !ended {
		return err
	}
	return c.Call(s).LearnLive(ctx, f)
}

// lapses returns the plans of this machine for which nothing waits.
func (c *Session) lapses(ctx context.Context, just time.Duration) []unattended.Lapse {
	return unattended.Lapses(ctx, c.machine(), c.Dirs, just, c.trouble)
}

// mend carries out a plan that is overdue, and has another waited for.
func (c *Session) mend(ctx context.Context, l *unattended.Lapse) error {
	if !l.Overdue() {
		return l.Mend(ctx, c.machine())
	}
	err := c.Unattended(l.Key).Run(ctx, l.Trigger, unattended.Late)
	if problem.Exit(err) == int(problem.Reverted) {
		c.trouble(l.Key, err) // that is how it was to end
		return nil
	}
	return err
}

// WaitAgain has each plan of this machine waited for again for which nothing waits. A host does that when
// another one reaches it.
func (c *Session) WaitAgain(ctx context.Context) {
	for _, l := range c.lapses(ctx, unattended.Punctual) {
		if err := l.Mend(ctx, c.machine()); err != nil {
			c.trouble(l.Key, err)
		}
	}
}

// Forgotten returns when a twin expires, if nothing waits for that.
func (c *Session) Forgotten(key string) (at time.Time, so bool) {
	if !strings.Contains(key, ".") {
		return at, false
	}
	for _, l := range c.lapses(context.Background(), unattended.Punctual) {
		if l.Planned == (apply.Planned{Key: key, Trigger: apply.AtExpiry}) {
			return l.At, true
		}
	}
	return at, false
}

// resumeTrial has a trial watched again on the only host of a site whose nodes are up after a reboot, or of
// which a former version has stored no plan. What is left of its time goes by the clock of this boot.
func (c *Session) resumeTrial(ctx context.Context, s *site.Site) error {
	f, err := c.Hosts(ctx, s)
	if err != nil || !f.Own() { // other hosts watch over a trial by themselves
		return err
	}
	r, err := f.ReadReleases(ctx)
	if err != nil || r.Trial == nil || r.Switch != nil { // somebody switches now, or will be told that a switch was cut short
		return err
	}
	now := host.Now()
	if _, err := apply.ReadUnattended(c.Dirs, s.Key(), apply.OnTrial); err == nil && r.Trial.Boot == now.Boot {
		return nil
	}
	letGo, err := c.atWork().Hold(ctx, s, f)
	if err != nil {
		return err
	}
	defer letGo()
	if r, err = f.ReadReleases(ctx); err != nil || r.Trial == nil {
		return err
	}
	left := r.Trial.Left(now)
	if left <= 0 {
		r.Trial.Failed = "its time was over while nobody watched over it"
	}
	r.Trial.Begin(now, left)
	if err := f.WriteReleases(r); err != nil {
		return err
	}
	c.TellTrial(s, r.Trial)
	if err := c.Call(s).Learn(ctx, f, r.Trial.Back); err != nil {
		return err
	}
	_, err = unattended.SaveRollbackPlans(ctx, c.Call(s), f, r.Trial, f.Sites())
	return err
}
