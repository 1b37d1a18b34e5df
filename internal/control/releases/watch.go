package releases

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/control/register"
	"orrery/internal/control/status"
	"orrery/internal/control/trial"
	"orrery/internal/host"
	"orrery/internal/host/later"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Watched reports whether somebody watches over a trial of a site.
func Watched(c *control.Session, s *site.Site) bool {
	return host.Held(hosts.TrialLock(c.Dirs, s.Key()))
}

// WatchTrial watches over a trial until it is over, and ends it when it is to end. It gives how it ended.
func WatchTrial(ctx context.Context, c *control.Session, s *site.Site) (*observe.TrialEnd, error) {
	lock, err := host.TakeLockWithin(ctx, hosts.WatchTimeout, hosts.TrialLock(c.Dirs, s.Key()), control.Holder(c))
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	w := &trial.Watch{
		Look: func() (observe.Releases, error) {
			f, err := c.Bare(ctx, s)
			if err != nil {
				return observe.Releases{}, err
			}
			return f.ReadReleases(ctx)
		},
		Lives: func(pid int) bool { return syscall.Kill(pid, 0) == nil },
		Sick:  func(ctx context.Context, nodes []string) (string, error) { return sick(ctx, c, s, nodes) },
		Confirm: func(ctx context.Context) error {
			_, err := Confirm(ctx, c.WithoutOverdue(), s, "its health checks held")
			return err
		},
		GoBack: func(ctx context.Context, why string) error {
			t, err := newChange(ctx, c, s)
			if err != nil || t.before.Trial == nil {
				return err
			}
			return goBack(ctx, c, s, t, why)
		},
		Now:  host.Now,
		Wait: func(ctx context.Context, d time.Duration) { _ = host.Pause(ctx, d) },
		Say:  func(err error) { c.Trouble(s.Key(), err) },
	}
	end, err := w.Run(ctx)
	if err != nil {
		return nil, err
	}
	return hosts.Verdict(s, end)
}

// AwaitTrial waits for the end of a trial, and gives how it ended. That it has failed on one of several hosts, each of which watches
// over it by itself, lets all go back at once.
func AwaitTrial(ctx context.Context, c *control.Session, s *site.Site) (*observe.TrialEnd, error) {
	for {
		t, err := newChange(ctx, c, s)
		if err != nil {
			return nil, err
		}
		if r := t.before; r.Trial == nil && (r.Switch == nil || !t.hosts.Own()) {
			return hosts.Verdict(s, r)
		}
		failing, err := hosts.Failing(ctx, t.hosts)
		if err != nil {
			return nil, err
		}
		if len(failing) > 0 {
			return nil, goBack(ctx, c, s, t, failing[hosts.FirstOf(failing)])
		}
		if host.Pause(ctx, awaitInterval) != nil {
			return nil, problem.New(problem.Interrupted, "no longer waiting; the trial continues").Try("orrery status shows it; orrery confirm or orrery rollback ends it")
		}
	}
}

// awaitInterval is how often the hosts are asked whether a trial is over.
const awaitInterval = time.Second

// sick names a node that is not healthy, and why; "": all are.
func sick(ctx context.Context, c *control.Session, s *site.Site, nodes []string) (string, error) {
	all, err := status.Read(ctx, c, s, nodes)
	if err != nil {
		return "", err
	}
	all.CheckHealth(ctx)
	for _, r := range all.Nodes {
		if !r.Quarantine && !r.Good() {
			return fmt.Sprintf("node %s is %s, %s %s", r.Node, r.State, r.Health, r.Detail), nil
		}
	}
	return "", nil
}

// goBack ends a trial with the return to what was live before it. Somebody who is at work is waited for.
func goBack(ctx context.Context, c *control.Session, s *site.Site, t *change, why string) error {
	trial := t.before.Trial
	t.to, t.back, t.ends, t.why = trial.Back, true, trial, why
	if err := c.Call(s).Learn(ctx, t.hosts, t.to); err != nil {
		return err
	}
	t.Session = c.WithoutOverdue().Patiently()
	t.Session.Asker = control.Agreed{} // to the trial, when it began
	if _, err := t.run(ctx); err != nil && !errors.Is(err, errTrialOver) {
		return err
	}
	r, err := t.hosts.ReadReleases(ctx)
	if err != nil {
		return err
	}
	_, err = hosts.Verdict(s, r)
	return err
}

// ResumeTrial lets a trial be watched again, or ends it if its time is over: nobody has seen then whether the checks held.
func ResumeTrial(ctx context.Context, c *control.Session, s *site.Site) error {
	f, err := c.Bare(ctx, s)
	if err != nil || !f.Own() { // other hosts watch over a trial by themselves
		return err
	}
	r, err := f.ReadReleases(ctx)
	if err != nil || r.Trial == nil || r.Switch != nil || Watched(c, s) { // somebody switches now, or will be told that a switch was cut short
		return err
	}
	now := host.Now()
	if left := r.Trial.Left(now); left > 0 {
		return watchAgain(ctx, c, s, now, left)
	}
	t, err := newChange(ctx, c, s)
	if err != nil || t.before.Trial == nil {
		return err
	}
	err = goBack(ctx, c, s, t, "its time was over while nobody watched over it")
	if problem.Exit(err) == int(problem.Reverted) {
		c.Trouble(s.Key(), err) // that is how it was to end
		return nil
	}
	return err
}

// watchAgain lets a trial be watched that nobody watches. After a reboot, what is left of its time goes by the clock of this boot.
func watchAgain(ctx context.Context, c *control.Session, s *site.Site, now observe.Moment, left time.Duration) error {
	f, err := c.Bare(ctx, s)
	if err != nil {
		return err
	}
	letGo, err := c.WithoutOverdue().Hold(ctx, s, f)
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
	TellTrial(c, s, r.Trial)
	return watchTrial(ctx, c, s)
}

// watchTrial lets a process watch over a trial, whatever becomes of this one.
func watchTrial(ctx context.Context, c *control.Session, s *site.Site) error {
	args, err := control.SameSite(c, "trial")
	if err != nil {
		return err
	}
	return c.Local().Later(ctx, later.Call{Name: apply.WatchName(s.Key()), Args: args})
}

// TellTrial says how a trial will end.
func TellTrial(c *control.Session, s *site.Site, trial *observe.Trial) {
	how := "stays with \"orrery confirm\", or if its health checks hold until then,"
	if trial.ByHand {
		how = "stays with \"orrery confirm\" only,"
	}
	c.Outcome(s.Key(), "%s: release %s is on trial until %s: it %s and goes back to release %s otherwise",
		s.Key(), site.ReleaseName(trial.Release), phrase.Clock(trial.Until), how, register.ReleaseNames(trial.Back))
}
