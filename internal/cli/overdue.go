package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"orrery/internal/apply/local"
	"orrery/internal/host"
	"orrery/internal/host/later"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// atWork gives an app that is about what is overdue, and does not ask what else is.
func (a *app) atWork() *app {
	b := *a
	b.late = true
	return &b
}

// catchUp does what was to happen by itself and did not, because the process that waited for it was killed: whoever changes a site does it first.
// What goes wrong with it is said, and keeps nobody from anything.
func (a *app) catchUp(ctx context.Context, s *site.Site, h *local.Host) error {
	if a.late {
		return nil
	}
	if err := needRoot(); err != nil {
		return err
	}
	for _, r := range a.forgottenTwins(punctual) {
		if err := a.endForgotten(ctx, r); err != nil {
			printError(a.err, err)
			continue
		}
		if r.key() == s.Key() {
			return problem.New(problem.Surprise, "the time of twin %s was over at %s; it is gone", s.Twin, clock(r.Expires)).At(s.Key()).
				Try("orrery twin create makes another")
		}
	}
	r, err := h.ReadReleases()
	if err != nil || r.Trial == nil || a.watched(s) {
		return err
	}
	if r.Trial.Boot != host.Now().Boot {
		fmt.Fprintf(a.err, "orrery: %s: nobody has watched over the trial of release %d since the host rebooted (orrery up or orrery resume goes on with it)\n",
			s.Key(), r.Trial.Release)
		return nil // its nodes come up first
	}
	if err := a.atWork().resumeTrial(ctx, s); err != nil {
		printError(a.err, err)
	}
	return a.loadLive(h)
}

// punctual is how late whoever waits may be: it is at work then.
const punctual = 15 * time.Second

// forgottenTwins gives the twins that have an end for which nobody waits, but not those whose time was over just now: for so long whoever
// has waited may be at work.
func (a *app) forgottenTwins(just time.Duration) []twinRecord {
	waiting, err := later.List(a.dirs)
	if err != nil || needRoot() != nil { // nobody else may read who waits
		return nil
	}
	return slices.DeleteFunc(a.twins(), func(r twinRecord) bool {
		over := time.Since(r.Expires)
		return r.Expires.IsZero() || over >= 0 && over < just ||
			slices.ContainsFunc(waiting, func(w later.Waiting) bool { return w.Name == expiryName(r.key()) })
	})
}

// forgotten says of a twin that nobody sees to its end, if so.
func (a *app) forgotten(key string) (r twinRecord, so bool) {
	all := a.forgottenTwins(punctual)
	i := slices.IndexFunc(all, func(r twinRecord) bool { return r.key() == key })
	if i < 0 {
		return r, false
	}
	return all[i], true
}

// endForgotten destroys a twin whose time is over, and lets somebody wait for the end of another.
func (a *app) endForgotten(ctx context.Context, r twinRecord) error {
	b := a.atWork()
	b.siteDir, b.twin, b.force = r.Dir, r.Options.Name, true
	if time.Now().Before(r.Expires) {
		return b.expire(r)
	}
	fmt.Fprintf(a.err, "orrery: the time of twin %s was over at %s, and nobody saw to it; it is destroyed now.\n", r.key(), clock(r.Expires))
	return b.destroyTwin(ctx, r)
}

// resumeTrial lets a trial be watched again, or ends it if its time is over: nobody has seen then whether the checks held.
func (a *app) resumeTrial(ctx context.Context, s *site.Site) error {
	h, err := a.bare(s)
	if err != nil {
		return err
	}
	r, err := h.ReadReleases()
	if err != nil || r.Trial == nil || r.Switch != nil || a.watched(s) { // somebody switches now, or will be told that a switch was cut short
		return err
	}
	now := host.Now()
	if left := r.Trial.Left(now); left > 0 {
		return a.watchAgain(ctx, s, now, left)
	}
	t, err := a.newTurn(s)
	if err != nil || t.before.Trial == nil {
		return err
	}
	err = a.goBack(ctx, s, t, "its time was over while nobody watched over it")
	if problem.Exit(err) == int(problem.Reverted) {
		printError(a.err, err) // that is how it was to end
		return nil
	}
	return err
}

// watchAgain lets a trial be watched that nobody watches. After a reboot, what is left of its time goes by the clock of this boot.
func (a *app) watchAgain(ctx context.Context, s *site.Site, now observe.Moment, left time.Duration) error {
	h, err := a.bare(s)
	if err != nil {
		return err
	}
	letGo, err := a.atWork().hold(ctx, s)
	if err != nil {
		return err
	}
	r, err := h.ReadReleases()
	if err == nil && r.Trial != nil && r.Trial.Boot != now.Boot {
		r.Trial.Begin(now, left)
		err = h.WriteReleases(r)
	}
	letGo()
	if err != nil || r.Trial == nil {
		return err
	}
	a.tellTrial(s, r.Trial)
	return a.watchTrial(s)
}

// clock says when, to the second, for what is near.
func clock(t time.Time) string {
	if time.Since(t).Abs() > 12*time.Hour {
		return t.Local().Format("2006-01-02 15:04")
	}
	return t.Local().Format("15:04:05")
}
