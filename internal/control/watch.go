package control

import (
	"context"
	"errors"
	"time"

	"orrery/internal/control/hosts"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

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
