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
		t, err := newChange(ctx, c, s)
		if ctx.Err() != nil {
			return nil, noLonger()
		}
		if err != nil {
			return nil, err
		}
		if t.before.Trial == nil {
			over, err := t.atRest(ctx)
			if ctx.Err() != nil {
				return nil, noLonger()
			}
			if err != nil {
				return nil, err
			}
			if over {
				return hosts.Verdict(s, t.before)
			}
		}
		failing, err := hosts.Failing(ctx, t.hosts)
		if ctx.Err() != nil {
			return nil, noLonger()
		}
		if err != nil {
			return nil, err
		}
		if len(failing) > 0 {
			return nil, goBack(ctx, c, s, t, failing[hosts.FirstOf(failing)])
		}
		if host.Pause(ctx, awaitInterval) != nil {
			return nil, noLonger()
		}
	}
}

// atRest reports whether no process is switching. A switch that is then still on record was
// interrupted. A process that switches holds the site's lock.
func (t *change) atRest(ctx context.Context) (bool, error) {
	if t.before.Switch == nil {
		return true, nil
	}
	letGo, err := t.hosts.Hold(ctx, control.Holder(t.Session))
	if err != nil {
		held, err := waits.Locked(err)
		return held == nil, err
	}
	defer letGo()
	t.before, err = t.hosts.Records().Read(ctx) // the switch may have ended since the records were read
	return t.before.Trial == nil, err
}

// noLonger returns the error that the wait for the end of a trial was interrupted.
func noLonger() error {
	return problem.New(problem.Interrupted, "no longer waiting; the trial continues").
		Try("orrery status shows it; orrery confirm or orrery rollback ends it")
}

// awaitInterval is how often the hosts are asked whether a trial is over.
const awaitInterval = time.Second

// goBack ends a trial by returning to what was live before it. It waits for other processes that
// hold the lock.
func goBack(ctx context.Context, c *control.Session, s *site.Site, t *change, why string) error {
	trial := t.before.Trial
	t.to, t.back, t.ends, t.why = trial.Back, true, trial, why
	if err := c.Call(s).Releases(t.hosts).Learn(ctx, t.to); err != nil {
		return err
	}
	t.Session = c.WithoutOverdue().Patiently()
	t.Session.Asker = control.Agreed{} // the caller agreed to the trial when it began
	if _, err := t.run(ctx); err != nil && !errors.Is(err, errTrialOver) {
		return err
	}
	r, err := t.hosts.Records().Read(ctx)
	if err != nil {
		return err
	}
	_, err = hosts.Verdict(s, r)
	return err
}

// TellTrial reports how a trial will end.
func TellTrial(c *control.Session, s *site.Site, trial *observe.Trial) {
	how := "stays with \"orrery confirm\", or if its health checks hold until then,"
	if trial.ByHand {
		how = "stays with \"orrery confirm\" only,"
	}
	c.Outcome(s.Key(), "%s: release %s is on trial until %s: it %s and goes back to release %s otherwise",
		s.Key(), site.ReleaseName(trial.Release), humanize.Clock(trial.Until), how, register.ReleaseNames(trial.Back))
}
