// Package overdue carries out scheduled work whose process was killed or did not survive a reboot.
// It destroys expired twins, and watches or ends trials of releases.
package overdue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/control/releases"
	"orrery/internal/control/unattended"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// Work is the Overdue of a session.
type Work struct{}

// CatchUp carries out overdue work before a site is changed.
func (Work) CatchUp(ctx context.Context, c *control.Session, s *site.Site, f *apply.Fleet) error {
	if err := c.CheckAllowedOn(s); err != nil {
		return err
	}
	ended, again := false, false // a trial of the site has ended, or is watched again
	for _, l := range lapses(ctx, c, unattended.StartGrace) {
		// Do not wait for overdue work of another site, or of a twin that another process is
		// changing.
		name, _, _ := strings.Cut(l.Key, ".")
		wait := name == s.Name && !host.IsLocked(c.Dirs.Lock(l.Key))
		switch err := resumePlan(ctx, c, &l, wait); {
		case err != nil:
			c.Trouble(l.Key, err)
		case l.Key != s.Key() || !wait:
		case l.Overdue() && l.Trigger == apply.TriggerExpiry:
			return expiredError(s, l.At)
		default:
			ended, again = ended || l.Overdue(), again || l.Trigger == apply.TriggerTrial
		}
	}
	if r, known := c.Known.Twin(s.Key()); known && !r.Expires.IsZero() && time.Now().After(r.Expires) {
		return expiredError(s, r.Expires)
	}
	if !c.Connector(s).DecidesTrials() { // each host watches its trial on its own
		return nil
	}
	r, err := f.Records().Read(ctx)
	if err == nil && r.Trial != nil && r.Trial.Boot != host.Now().Boot {
		c.Notice(s.Key(), "%s: the trial of release %d has not been watched since the host rebooted (orrery up or orrery resume continues it)",
			s.Key(), r.Trial.Release)
		return nil // its nodes come up first
	}
	if err == nil && r.Trial != nil && again {
		releases.ReportTrial(c, s, r.Trial)
	}
	if err != nil || !ended {
		return err
	}
	return c.Connector(s).Releases(f).LoadLive(ctx)
}

// expiredError returns the error that a twin has expired. Other hosts may still be destroying their
// parts.
func expiredError(s *site.Site, at time.Time) error {
	p := problem.New(problem.Surprise, "twin %s expired at %s; it is gone", s.Twin, humanize.Time(at)).At(s.Key())
	if len(hosts.RemoteNames(s)) > 0 {
		p.What = fmt.Sprintf("twin %s expired at %s; each of its hosts destroys its part", s.Twin, humanize.Time(at))
		return p.Try("orrery twin destroy %s destroys the rest now", s.Twin)
	}
	return p.Try("orrery twin create creates another")
}

// lapses returns the plans of this machine that no process waits for.
func lapses(ctx context.Context, c *control.Session, just time.Duration) []unattended.Lapse {
	return unattended.Lapses(ctx, c.Local(), c.Dirs, just, c.Trouble)
}

// resumePlan carries out a plan that is overdue, if wait is set. Otherwise it starts a process that waits
// for the plan.
func resumePlan(ctx context.Context, c *control.Session, l *unattended.Lapse, wait bool) error {
	if !l.Overdue() || !wait {
		return l.Resume(ctx, c.Local())
	}
	err := control.Unattended(c, l.Key).Run(ctx, l.Trigger, unattended.CatchUpPart)
	if problem.ExitCode(err) == int(problem.Reverted) {
		c.Trouble(l.Key, err) // this is the expected end
		return nil
	}
	if err != nil && l.Trigger == apply.TriggerTrial {
		return problem.New(problem.Failed, "the trial of a release is over, but it could not be ended").Because(err).
			Try("the next command that changes the site tries again")
	}
	return err
}

// RestartWaiters starts a waiting process for each plan of this machine that has none. A host calls it
// when another host connects.
func RestartWaiters(ctx context.Context, c *control.Session) {
	for _, l := range lapses(ctx, c, unattended.StartGrace) {
		if err := l.Resume(ctx, c.Local()); err != nil {
			c.Trouble(l.Key, err)
		}
	}
}

// UnwatchedExpiry returns when a twin expires, if no process waits for that.
func UnwatchedExpiry(c *control.Session, key string) (at time.Time, ok bool) {
	if !strings.Contains(key, ".") {
		return at, false
	}
	for _, l := range lapses(context.Background(), c, unattended.StartGrace) {
		if l.PlanID == (apply.PlanID{Key: key, Trigger: apply.TriggerExpiry}) {
			return l.At, true
		}
	}
	return at, false
}

// ResumeTrial starts a process that watches a trial on the only host of a site. It is needed after
// the nodes are up again after a reboot, or if a former version stored no plan. The remaining time
// is converted to the clock of this boot.
func ResumeTrial(ctx context.Context, c *control.Session, s *site.Site) error {
	if !c.Connector(s).DecidesTrials() { // each host watches its trial on its own
		return nil
	}
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return err
	}
	r, err := f.Records().Read(ctx)
	if err != nil || !isUnwatched(c, s, &r) {
		return err
	}
	// Another process may be about to end the trial: its user, or a watcher whose time is over.
	letGo, err := c.WithoutOverdue().WaitingForLocks().LockSite(ctx, s, f)
	if err != nil {
		return err
	}
	defer letGo()
	if r, err = f.Records().Read(ctx); err != nil || !isUnwatched(c, s, &r) {
		return err
	}
	now := host.Now()
	left := r.Trial.Remaining(now)
	if left <= 0 {
		r.Trial.Failed = unattended.ReasonUnwatched
	}
	r.Trial.SetDeadline(now, left)
	if err := f.Records().Write(ctx, r); err != nil {
		return err
	}
	releases.ReportTrial(c, s, r.Trial)
	if err := c.Connector(s).Releases(f).LoadReleases(ctx, r.Trial.Back); err != nil {
		return err
	}
	_, err = unattended.SaveRollbackPlans(ctx, c.Connector(s), f, r.Trial, f.Views().Sites())
	return err
}

// isUnwatched reports whether a release is on trial without a plan of this boot. It returns false if a switch
// is under way, or was interrupted: that is reported elsewhere.
func isUnwatched(c *control.Session, s *site.Site, r *observe.Releases) bool {
	if r.Trial == nil || r.Switch != nil {
		return false
	}
	_, err := apply.ReadUnattended(c.Dirs, s.Key(), apply.TriggerTrial)
	return err != nil || r.Trial.Boot != host.Now().Boot
}

// ResumeExpiries destroys expired twins, and starts waiting processes for the others. The former
// processes did not survive the reboot.
func ResumeExpiries(ctx context.Context, c *control.Session) error {
	var all error
	for _, l := range lapses(ctx, c, 0) {
		if l.At.IsZero() { // its nodes come up first
			continue
		}
		if err := resumePlan(ctx, c, &l, true); err != nil {
			c.Trouble(l.Key, err)
			_, name, _ := strings.Cut(l.Key, ".")
			all = errors.Join(all, problem.New(problem.Failed, "twin %s has expired and could not be destroyed",
				l.Key).Try("orrery twin destroy %s", name))
		}
	}
	return all
}

// ResumeHost brings up this host's part of sites on several hosts, from its own records, and
// returns their keys. It also resumes watching their trials.
func ResumeHost(ctx context.Context, c *control.Session) (keys []string, err error) {
	if err := c.Allowed(); err != nil {
		return nil, err
	}
	keys, err = unattended.Resume(ctx, c.Dirs, func(key string) *unattended.Host { return control.Unattended(c, key) })
	RestartWaiters(ctx, c)
	return keys, err
}
