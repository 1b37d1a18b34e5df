package unattended

import (
	"context"
	"errors"
	"slices"
	"time"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/problem"
)

// A Trigger is a reason for which a host does something on its own.
type Trigger interface {
	// Name is that of its plans, and of what runs them.
	Name() string
	// Run carries out the plan that the host has, or a part of it.
	Run(ctx context.Context, h *Host, part string) error
}

// An Awaited trigger is one for which a process waits, or watches. Others wait for what starts this
// program: a reboot, a timer.
type Awaited interface {
	Trigger
	// Due returns when a plan is carried out at the latest, or zero if that is not for this host to say. Over
	// reports that there is nothing to wait for, although the host has the plan.
	Due(ctx context.Context, h *Host, p *apply.UnattendedPlan) (at time.Time, over bool, err error)
}

// Triggers are all of them.
var Triggers = []Trigger{boot{}, trial{}, mirror{}, expiry{}}

func find(name string) Trigger {
	i := slices.IndexFunc(Triggers, func(t Trigger) bool { return t.Name() == name })
	if i < 0 {
		return nil
	}
	return Triggers[i]
}

// dated is an awaited trigger whose plans say when they are due.
type dated struct{}

func (dated) Due(_ context.Context, _ *Host, p *apply.UnattendedPlan) (time.Time, bool, error) {
	return p.At, false, nil
}

// watchTimeout is how long a process that is to watch waits for its lock: one that only asks whether the lock
// is held holds it for a moment.
const watchTimeout = 5 * time.Second

// TakeWatch takes the lock of the process that watches.
func TakeWatch(ctx context.Context, dirs host.Dirs, key, trigger string, by host.Holder) (*host.Lock, error) {
	return host.TakeLockWithin(ctx, watchTimeout, apply.WatchLock(dirs, key, trigger), by)
}

// Resume carries out what this machine does after a reboot, and returns the keys of the sites. On returns this
// machine for a site.
func Resume(ctx context.Context, dirs host.Dirs, on func(key string) *Host) (keys []string, err error) {
	for _, p := range apply.Unattended(dirs, "*") {
		if p.Trigger != apply.AtBoot {
			continue
		}
		keys = append(keys, p.Key)
		h := on(p.Key)
		if failed := h.Run(ctx, p.Trigger, ""); failed != nil {
			h.Say(failed)
			err = errors.Join(err, problem.New(problem.Kind(problem.Exit(failed)),
				"not all of site %s was brought up on this host", p.Key).
				At(apply.UnattendedPath(dirs, p.Key, p.Trigger)))
		}
	}
	return keys, err
}
