package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// trialLock is held by whoever watches over a trial of a site, so that others know that somebody does.
func (c *Session) trialLock(s *site.Site) string { return c.Dirs.Site(s.Key()) + "/trial.lock" }

// watched reports whether somebody watches over a trial of a site.
func (c *Session) watched(s *site.Site) bool { return host.Held(c.trialLock(s)) }

// WatchTrial watches over a trial until it is over, and ends it when it is to end. It gives how it ended.
func (c *Session) WatchTrial(ctx context.Context, s *site.Site) (*observe.TrialEnd, error) {
	lock, err := c.takeWatch(ctx, s)
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	w := &watch{
		look: func() (observe.Releases, error) {
			h, err := c.Bare(s)
			if err != nil {
				return observe.Releases{}, err
			}
			return h.ReadReleases()
		},
		lives: func(pid int) bool { return syscall.Kill(pid, 0) == nil },
		sick:  func(ctx context.Context, nodes []string) (string, error) { return c.sick(ctx, s, nodes) },
		confirm: func(ctx context.Context) error {
			_, err := c.atWork().Confirm(ctx, s, "its health checks held")
			return err
		},
		goBack: func(ctx context.Context, why string) error {
			t, err := c.newChange(s)
			if err != nil || t.before.Trial == nil {
				return err
			}
			return c.goBack(ctx, s, t, why)
		},
		now: host.Now,
		wait: func(ctx context.Context, d time.Duration) {
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
		},
		say: func(err error) { c.trouble(s.Key(), err) },
	}
	end, err := w.run(ctx)
	if err != nil {
		return nil, err
	}
	return verdictOf(s, end)
}

// takeWatch takes the lock of whoever watches. Somebody who just asks whether it is held has it for a moment.
func (c *Session) takeWatch(ctx context.Context, s *site.Site) (*host.Lock, error) {
	for try := 0; ; try++ {
		lock, err := host.TakeLock(c.trialLock(s), host.Holder{Who: Who(), Pid: os.Getpid(), Since: time.Now(), Command: c.Command})
		if err == nil || problem.Exit(err) != int(problem.Locked) || try == 100 {
			return lock, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// A watch goes on until a trial is over. Nothing but that ends it: what goes wrong is said and tried again, less and less often.
type watch struct {
	look    func() (observe.Releases, error)
	lives   func(pid int) bool
	sick    func(ctx context.Context, nodes []string) (string, error) // names one that is not healthy, and why
	confirm func(ctx context.Context) error
	goBack  func(ctx context.Context, why string) error
	now     func() observe.Moment
	wait    func(ctx context.Context, d time.Duration)
	say     func(error)

	bad   int       // rounds in a row in which a check failed
	since time.Time // of which trial, by its end
}

const (
	failures   = 3 // times in a row that a health check fails before the release goes back
	heartbeat  = time.Second
	switchBeat = 100 * time.Millisecond
	longPause  = 30 * time.Second // between two tries of what fails
)

// run watches, and gives what is on record at the end.
func (w *watch) run(ctx context.Context) (observe.Releases, error) {
	for pause := heartbeat; ; {
		r, err := w.look()
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
		w.say(err)
		w.wait(ctx, pause)
		pause = min(2*pause, longPause)
	}
}

// awaitSwitch waits for the switch that begins a trial. One that was killed has begun none. The site's lock is not taken for it, so that
// nobody finds that taken who comes right after the switch.
func (w *watch) awaitSwitch(ctx context.Context, r observe.Releases) (over bool, err error) {
	lives := w.lives(r.Switch.Pid) // asked before what is on record, because it writes that and ends
	again, err := w.look()
	if err != nil {
		return false, err
	}
	if !lives && again.Switch != nil && again.Switch.Pid == r.Switch.Pid {
		return true, nil
	}
	if again.Switch != nil {
		w.wait(ctx, switchBeat)
	}
	return false, nil
}

// round tries the health checks, ends the trial if it is to end, and waits for the next round. The checks have been tried at least once when
// it ends, however short it is.
func (w *watch) round(ctx context.Context, trial *observe.Trial) error {
	if !w.since.Equal(trial.Until) {
		w.bad, w.since = 0, trial.Until
	}
	sick, err := w.sick(ctx, slices.Sorted(maps.Keys(trial.Back)))
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
	over := trial.Left(w.now()) <= 0
	switch {
	case w.bad >= failures:
		return w.ended(w.goBack(ctx, sick))
	case over && trial.ByHand:
		return w.ended(w.goBack(ctx, "nobody confirmed it"))
	case over && w.bad == 0:
		return w.ended(w.confirm(ctx))
	}
	w.wait(ctx, min(heartbeat, max(trial.Left(w.now()), heartbeat/20)))
	return nil
}

// ended gives what went wrong with ending a trial: nothing if the record says that it is over, whoever ended it.
func (w *watch) ended(err error) error {
	r, unread := w.look()
	switch {
	case unread != nil:
		return unread
	case r.Trial == nil && r.Switch == nil:
		return nil
	case err == nil:
		return errors.New("the trial is still on record")
	}
	return err
}

// AwaitTrial waits for the end of a trial, and gives how it ended.
func (c *Session) AwaitTrial(ctx context.Context, s *site.Site) (*observe.TrialEnd, error) {
	h, err := c.Bare(s)
	if err != nil {
		return nil, err
	}
	for {
		r, err := h.ReadReleases()
		if err != nil {
			return nil, err
		}
		if r.Trial == nil && r.Switch == nil {
			return verdictOf(s, r)
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return nil, problem.New(problem.Interrupted, "no longer waited for; the trial goes on").Try("orrery status shows it, orrery confirm or orrery rollback ends it")
		}
	}
}

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
	if err := c.LoadReleases(t.host, t.to); err != nil {
		return err
	}
	t.Session = c.atWork().Patiently()
	t.Asker = Agreed{} // to the trial, when it began
	if _, err := t.run(ctx); err != nil && !errors.Is(err, errTrialOver) {
		return err
	}
	r, err := t.host.ReadReleases()
	if err != nil {
		return err
	}
	_, err = verdictOf(s, r)
	return err
}
