// Package trial watches a release on trial: a switch has made it live, and it is rolled back unless
// a user confirms it or its health checks pass for a given time. A Watch decides; what it asks of
// the host, and of the clock, it is given.
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

// A Watch goes on until a trial is over. Nothing but that ends it: what goes wrong is said and
// tried again, less and less often.
type Watch struct {
	Look    func() (observe.Releases, error)
	Lives   func(pid int) bool
	Sick    func(ctx context.Context, nodes []string) (string, error) // names one that is not healthy, and why
	Confirm func(ctx context.Context) error
	GoBack  func(ctx context.Context, why string) error
	Now     func() observe.Moment
	Wait    func(ctx context.Context, d time.Duration)
	Say     func(error)

	bad   int       // rounds in a row in which a check failed
	since time.Time // of which trial, by its end
}

// Failures is how often in a row a health check fails before the release goes back, or is not to be confirmed.
const Failures = 3

const (
	heartbeat  = time.Second
	switchBeat = 100 * time.Millisecond
	longPause  = 30 * time.Second // between two tries of what fails
)

// Run watches, and returns what is on record at the end.
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
			err = w.round(ctx, r.Trial)
		}
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		if err == nil {
			pause = heartbeat
			continue
		}
		w.Say(err)
		w.Wait(ctx, pause)
		pause = min(2*pause, longPause)
	}
}

// awaitSwitch waits for the switch that begins a trial. One that was killed has begun none. The
// site's lock is not taken for it, so that nobody finds that taken who comes right after the
// switch.
func (w *Watch) awaitSwitch(ctx context.Context, r observe.Releases) (over bool, err error) {
	lives := w.Lives(r.Switch.Pid) // asked before what is on record, because it writes that and ends
	again, err := w.Look()
	if err != nil {
		return false, err
	}
	if !lives && again.Switch != nil && again.Switch.Pid == r.Switch.Pid {
		return true, nil
	}
	if again.Switch != nil {
		w.Wait(ctx, switchBeat)
	}
	return false, nil
}

// round tries the health checks, ends the trial if it is to end, and waits for the next round. The
// checks have been tried at least once when it ends, however short it is.
func (w *Watch) round(ctx context.Context, trial *observe.Trial) error {
	if !w.since.Equal(trial.Until) {
		w.bad, w.since = 0, trial.Until
	}
	sick, err := w.Sick(ctx, slices.Sorted(maps.Keys(trial.Back)))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil { // whoever cannot look cannot say that it holds
		sick = "how its nodes are cannot be told: " + err.Error()
	}
	w.bad++
	if sick == "" {
		w.bad = 0
	}
	over := trial.Left(w.Now()) <= 0
	switch {
	case w.bad >= Failures:
		return w.ended(w.GoBack(ctx, sick))
	case over && trial.ByHand:
		return w.ended(w.GoBack(ctx, "nobody confirmed it"))
	case over && w.bad == 0:
		return w.ended(w.Confirm(ctx))
	}
	w.Wait(ctx, min(heartbeat, max(trial.Left(w.Now()), heartbeat/20)))
	return nil
}

// ended returns what went wrong with ending a trial, or nil if the record says that it is over,
// whoever ended it. What went wrong besides is said: nobody tries it again.
func (w *Watch) ended(err error) error {
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
