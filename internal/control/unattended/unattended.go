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

// A Trigger is a reason for a host to act on its own.
type Trigger interface {
	// Name returns the name of the trigger, which is also that of its plans and of the processes
	// that run them.
	Name() string
	// Run carries out the plan that the host has stored, or a part of it.
	Run(ctx context.Context, h *Host, part string) error
}

// An Awaited trigger is one for which a process waits or watches. Other triggers are started by a
// reboot or by a timer.
type Awaited interface {
	Trigger
	// Due returns the latest time at which a plan is carried out, or zero if this host cannot know.
	// Over reports that there is nothing to wait for, although the plan is stored.
	Due(ctx context.Context, h *Host, p *apply.UnattendedPlan) (at time.Time, over bool, err error)
}

// Triggers lists all triggers.
var Triggers = []Trigger{boot{}, trial{}, mirror{}, expiry{}, routineTrigger{}}

func findTrigger(name string) Trigger {
	i := slices.IndexFunc(Triggers, func(t Trigger) bool { return t.Name() == name })
	if i < 0 {
		return nil
	}
	return Triggers[i]
}

// dated is embedded in awaited triggers whose plans have a time.
type dated struct{}

func (dated) Due(_ context.Context, _ *Host, p *apply.UnattendedPlan) (time.Time, bool, error) {
	return p.At, false, nil
}

// watchTimeout is how long a process that will watch waits for its lock. A process that only checks
// whether the lock is held takes it for a moment.
const watchTimeout = 5 * time.Second

// LockWatch takes the lock of the process that watches a trigger of a site.
func LockWatch(ctx context.Context, dirs host.Dirs, key, trigger string, by host.Holder) (*host.Lock, error) {
	return host.TakeLockWithin(ctx, watchTimeout, apply.WatchLock(dirs, key, trigger), by)
}

// Resume carries out the boot plans of this machine after a reboot. It returns the keys of their
// sites. On returns this machine as the host of a site.
func Resume(ctx context.Context, dirs host.Dirs, on func(key string) *Host) (keys []string, err error) {
	for _, p := range apply.ListUnattended(dirs, "*") {
		if p.Trigger != apply.TriggerBoot {
			continue
		}
		keys = append(keys, p.Key)
		h := on(p.Key)
		if failed := h.Run(ctx, p.Trigger, ""); failed != nil {
			h.Say(failed)
			err = errors.Join(err, problem.New(problem.Kind(problem.ExitCode(failed)),
				"not all of site %s was brought up on this host", p.Key).
				At(apply.UnattendedPath(dirs, p.Key, p.Trigger)))
		}
	}
	return keys, err
}
