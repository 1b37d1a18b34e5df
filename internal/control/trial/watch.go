// Package trial watches a release on trial. A switch has made the release live. It is rolled back
// unless a user confirms it, or its health checks pass for a given time. A Watch only decides; the
// caller supplies access to the host and the clock.
package trial

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"orrery/internal/observe"
	"orrery/internal/problem"
)

// A Watch continues until a trial is over. Unless it is to give up, errors do not end it: they are reported, and
// the failed operation is repeated at growing intervals.
type Watch struct {
	Look    func() (observe.Releases, error)
	Lives   func(pid int) bool
	Sick    func(ctx context.Context, nodes []string) (string, error) // returns why a node is not healthy, or ""
	Confirm func(ctx context.Context) error
	GoBack  func(ctx context.Context, why string) error
	Now     func() observe.Timestamp
	Wait    func(ctx context.Context, d time.Duration)
	Say     func(error)
	GiveUp  bool // end with the first error, because a user waits for the end

	bad   int       // consecutive rounds in which a check failed
	since time.Time // the end of the trial that bad belongs to
}

// MaxFailures is how many consecutive failures of a health check make the release go back, or prevent
// its confirmation.
const MaxFailures = 3

const (
	heartbeat      = time.Second
	switchInterval = 100 * time.Millisecond
	maxRetryPause  = 30 * time.Second // longest pause between two attempts of what fails
)

// Run watches the trial, and returns the records at its end.
func (w *Watch) Run(ctx context.Context) (observe.Releases, error) {
	for pause := heartbeat; ; {
		r, err := w.Look()
		if err == nil && r.Trial == nil && r.Switch == nil {
			return r, nil
		}
		if err == nil && r.Trial == nil {
			var over bool
			if over, err = w.awaitSwitch(ctx, r); over {
				return r, nil
			}
		} else if err == nil {
			err = w.runRound(ctx, r.Trial)
		}
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		if err == nil {
			pause = heartbeat
			continue
		}
		if w.GiveUp {
			return r, err
		}
		w.Say(err)
		w.Wait(ctx, pause)
		pause = min(2*pause, maxRetryPause)
	}
}

// awaitSwitch waits for the switch that begins a trial. A killed switch has begun none. It does not
// take the site's lock, so that the next command after the switch does not find the site locked.
func (w *Watch) awaitSwitch(ctx context.Context, r observe.Releases) (over bool, err error) {
	lives := w.Lives(r.Switch.Pid) // before reading the records, because the switch writes them just before it ends
	again, err := w.Look()
	if err != nil {
		return false, err
	}
	if !lives && again.Switch != nil && again.Switch.Pid == r.Switch.Pid {
		return true, nil
	}
	if again.Switch != nil {
		w.Wait(ctx, switchInterval)
	}
	return false, nil
}

// runRound runs the health checks, ends the trial if it is time, and waits for the next round. However
// short a trial is, its checks run at least once before it ends.
func (w *Watch) runRound(ctx context.Context, trial *observe.Trial) error {
	if !w.since.Equal(trial.Until) {
		w.bad, w.since = 0, trial.Until
	}
	sick, err := w.Sick(ctx, slices.Sorted(maps.Keys(trial.Back)))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil { // without a result, the checks count as failed
		sick = "the state of its nodes is unknown: " + err.Error()
	}
	w.bad++
	if sick == "" {
		w.bad = 0
	}
	over := trial.Remaining(w.Now()) <= 0
	switch {
	case w.bad >= MaxFailures:
		return w.ignoreIfOver(w.GoBack(ctx, sick))
	case over && trial.ByHand:
		return w.ignoreIfOver(w.GoBack(ctx, "it was not confirmed"))
	case over && w.bad == 0:
		return w.ignoreIfOver(w.Confirm(ctx))
	}
	w.Wait(ctx, min(heartbeat, max(trial.Remaining(w.Now()), heartbeat/20)))
	return nil
}

// ignoreIfOver returns the error of ending a trial, or nil if the records say that the trial is over,
// whichever process ended it. In that case it only reports the error, because the attempt will not be
// repeated.
func (w *Watch) ignoreIfOver(err error) error {
	r, unread := w.Look()
	switch {
	case unread != nil:
		return unread
	case r.Trial == nil && r.Switch == nil:
		if err != nil && !problem.Is(err, problem.Reverted) {
			w.Say(err)
		}
		return nil
	case err == nil:
		return errors.New("the trial is still on record")
	}
	return err
}
