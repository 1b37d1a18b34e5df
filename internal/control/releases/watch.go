package releases

import (
	"context"
	"errors"
	"time"

	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/control/register"
	"orrery/internal/host"
	"orrery/internal/host/waits"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// AwaitTrial waits for the end of a trial, and returns how it ended. If the release fails on one of
// several hosts, AwaitTrial makes all of them go back at once, although each host watches the trial
// on its own.
func AwaitTrial(ctx context.Context, c *control.Session, s *site.Site) (*observe.TrialEnd, error) {
	for {
		over, why := false, ""
		t, err := newSwitchOp(ctx, c, s)
		if err == nil {
			over, why, err = t.trialState(ctx)
		}
		if err == nil && !over && why == "" && host.Sleep(ctx, awaitInterval) == nil {
			continue
		}
		switch {
		case ctx.Err() != nil:
			return nil, waitInterruptedError()
		case err != nil:
			return nil, err
		case over:
			return hosts.TrialResult(s, t.before)
		}
		return nil, rollBack(ctx, c, s, t, why)
	}
}

// trialState reports whether a trial is over or, if it is not, why it must go back; "" if it need not.
func (t *switchOp) trialState(ctx context.Context) (over bool, why string, err error) {
	if t.before.Trial == nil {
		over, err = t.isIdle(ctx)
		return over, "", err
	}
	failing, err := hosts.TrialFailures(ctx, t.hosts)
	if err == nil && len(failing) > 0 {
		why = failing[hosts.FirstHost(failing)]
	}
	return false, why, err
}

// isIdle reports whether no process is switching. A switch that is then still on record was
// interrupted. A process that switches holds the site's lock.
func (t *switchOp) isIdle(ctx context.Context) (bool, error) {
	if t.before.Switch == nil {
		return true, nil
	}
	letGo, err := t.hosts.LockAll(ctx, control.Holder(t.Session))
	if err != nil {
		held, err := waits.HolderOf(err)
		return held == nil, err
	}
	defer letGo()
	t.before, err = t.hosts.Records().Read(ctx) // the switch may have ended since the records were read
	return t.before.Trial == nil, err
}

// waitInterruptedError returns the error that the wait for the end of a trial was interrupted.
func waitInterruptedError() error {
	return problem.New(problem.Interrupted, "no longer waiting; the trial continues").
		Try("orrery status shows it; orrery confirm or orrery rollback ends it")
}

// awaitInterval is how often the hosts are asked whether a trial is over.
const awaitInterval = time.Second

// rollBack ends a trial by returning to what was live before it. It waits for other processes that
// hold the lock.
func rollBack(ctx context.Context, c *control.Session, s *site.Site, t *switchOp, why string) error {
	trial := t.before.Trial
	t.to, t.back, t.ends, t.why = trial.Back, true, trial, why
	if err := c.Connector(s).Releases(t.hosts).LoadReleases(ctx, t.to); err != nil {
		return err
	}
	t.Session = c.WithoutOverdue().WaitingForLocks()
	t.Session.Confirmer = control.AssumeYes{} // the caller agreed to the trial when it began
	if _, err := t.run(ctx); err != nil && !errors.Is(err, errTrialOver) {
		return err
	}
	r, err := t.hosts.Records().Read(ctx)
	if err != nil {
		return err
	}
	_, err = hosts.TrialResult(s, r)
	return err
}

// ReportTrial reports how a trial will end.
func ReportTrial(c *control.Session, s *site.Site, trial *observe.Trial) {
	how := "stays live if you confirm it (orrery confirm) or if its health checks hold until then"
	if trial.ByHand {
		how = "stays live only if you confirm it (orrery confirm)"
	}
	c.Outcome(s.Key(), "%s: release %s is on trial until %s: it %s; otherwise it goes back to release %s",
		s.Key(), site.ReleaseName(trial.Release), humanize.Time(trial.Until), how, register.ReleaseNames(trial.Back))
}
