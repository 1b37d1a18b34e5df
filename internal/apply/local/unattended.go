package local

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"orrery/internal/apply"
	"orrery/internal/host/schedule"
	"orrery/internal/observe/routine"
)

// A Scheduler runs command lines of this program at a later time.
type Scheduler interface {
	Later(ctx context.Context, job schedule.Job) error
	Cancel(name string) error
}

// SavePlan stores what the host does without the control host, and schedules it. An empty plan
// removes the former one.
func (h stateHost) SavePlan(ctx context.Context, p apply.UnattendedPlan) (notes []string, err error) {
	if err := p.Write(h.Dirs, h.Key); err != nil {
		return nil, err
	}
	if p.Trigger == apply.TriggerRoutine && p.Every[routine.Watch] == 0 {
		if err := os.Remove(apply.AlertsPath(h.Dirs, h.Key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	job, once := p.Job(h.Key)
	switch {
	case p.Empty():
		err = h.Waiter.Cancel(job.Name)
	case once:
		err = h.Waiter.Later(ctx, job)
	}
	if err == nil && (p.Empty() || len(p.Every) > 0) {
		notes, err = h.setTimers()
	}
	return notes, err
}

// setTimers sets the timers of the site to those of its plans.
func (h stateHost) setTimers() (notes []string, err error) {
	t := schedule.Timers{Key: h.Key, Dirs: h.Dirs}
	if t.Program, err = os.Executable(); err != nil {
		return nil, err
	}
	for _, planned := range apply.ListUnattended(h.Dirs, h.Key) {
		if p, err := apply.ReadUnattended(h.Dirs, h.Key, planned.Trigger); err == nil {
			// a plan that cannot be read will be written again by the control host
			t.All = append(t.All, p.Timers(h.Key)...)
		}
	}
	return h.Backends.Timers.Set(t)
}

// forgetPlans removes all plans of the site.
func (h stateHost) forgetPlans(ctx context.Context) error {
	for _, planned := range apply.ListUnattended(h.Dirs, h.Key) {
		if _, err := h.SavePlan(ctx, apply.UnattendedPlan{Trigger: planned.Trigger}); err != nil {
			return err
		}
	}
	_, err := h.setTimers()
	return err
}
