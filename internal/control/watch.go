package control

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control/hosts"
	"orrery/internal/control/trial"
	"orrery/internal/control/unattended"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// watched reports whether somebody watches over a trial of a site.
func (c *Session) watched(s *site.Site) bool {
	return host.Held(apply.WatchLock(c.Dirs, s.Key(), apply.OnTrial))
}

// WatchTrial watches over a trial until it is over, and ends it when it is to end. It gives how it ended.
func (c *Session) WatchTrial(ctx context.Context, s *site.Site) (*observe.TrialEnd, error) {
	lock, err := unattended.TakeWatch(ctx, c.Dirs, s.Key(), apply.OnTrial, c.Holder())
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
		Sick:  func(ctx context.Context, nodes []string) (string, error) { return c.sick(ctx, s, nodes) },
		Confirm: func(ctx context.Context) error {
			_, err := c.atWork().Confirm(ctx, s, "its health checks held")
			return err
		},
		GoBack: func(ctx context.Context, why string) error {
			t, err := c.newChange(ctx, s)
			if err != nil || t.before.Trial == nil {
				return err
			}
			return c.goBack(ctx, s, t, why)
		},
		Now:  host.Now,
		Wait: func(ctx context.Context, d time.Duration) { _ = host.Pause(ctx, d) },
		Say:  func(err error) { c.trouble(s.Key(), err) },
	}
	end, err := w.Run(ctx)
	if err != nil {
		return nil, err
	}
	return hosts.Verdict(s, end)
}

// AwaitTrial waits for the end of a trial, and gives how it ended. That it has failed on one of several hosts, each of which watches
// over it by itself, lets all go back at once.
func (c *Session) AwaitTrial(ctx context.Context, s *site.Site) (*observe.TrialEnd, error) {
	for {
		t, err := c.newChange(ctx, s)
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
			return nil, c.goBack(ctx, s, t, failing[hosts.FirstOf(failing)])
		}
		if host.Pause(ctx, awaitInterval) != nil {
			return nil, problem.New(problem.Interrupted, "no longer waiting; the trial continues").Try("orrery status shows it; orrery confirm or orrery rollback ends it")
		}
	}
}

// awaitInterval is how often the hosts are asked whether a trial is over.
const awaitInterval = time.Second

// sick names a node that is not healthy, and why; "": all are.
func (c *Session) sick(ctx context.Context, s *site.Site, nodes []string) (string, error) {
	all, err := c.Status(ctx, s, nodes)
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
func (c *Session) goBack(ctx context.Context, s *site.Site, t *change, why string) error {
	trial := t.before.Trial
	t.to, t.back, t.ends, t.why = trial.Back, true, trial, why
	if err := c.Call(s).Learn(ctx, t.hosts, t.to); err != nil {
		return err
	}
	t.Session = c.atWork().Patiently()
	t.Asker = Agreed{} // to the trial, when it began
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
