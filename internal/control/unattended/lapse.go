package unattended

import (
	"context"
	"slices"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control/here"
	"orrery/internal/host"
	"orrery/internal/host/schedule"
)

// StartGrace is how late a process may start after its time without being considered lapsed. It may
// be at work then.
const StartGrace = 15 * time.Second

// OverduePart is the part argument for a whole plan that is overdue and had no process waiting for it.
// What should have been watched until then was not watched.
const OverduePart = "late"

// CatchUpPart is OverduePart for a user who waits until the plan is carried out. What fails is not tried again.
const CatchUpPart = "late-once"

// A Lapse is a plan of this machine that should have a process waiting for it, but has none. The
// process was killed, or the machine was off.
type Lapse struct {
	apply.PlanID
	At time.Time // latest time at which the plan is due, or zero if the host cannot know

	job     schedule.Job
	watched bool // the process watches, rather than only waiting for a time
}

// Overdue reports whether the time of the plan is over.
func (l *Lapse) Overdue() bool { return !l.At.IsZero() && !time.Now().Before(l.At) }

// Resume starts a process that waits for the plan again. If the plan is overdue, it is carried out at
// once.
func (l *Lapse) Resume(ctx context.Context, m here.Machine) error {
	job := l.job
	if l.Overdue() {
		job.Args = append(slices.Clone(job.Args), OverduePart)
	}
	return m.Later(ctx, job)
}

// Lapses returns the lapses on this machine. It skips plans that became due less than just ago,
// because their process may be at work. It returns none if the caller is not root.
func Lapses(ctx context.Context, m here.Machine, dirs host.Dirs, just time.Duration,
	trouble func(key string, err error)) (all []Lapse) {
	pending, err := m.Waiting()
	if err != nil || m.Allowed() != nil {
		return nil
	}
	for _, planned := range apply.ListUnattended(dirs, "*") {
		l, ok, err := isLapsed(ctx, &Host{Machine: m, Dirs: dirs, Key: planned.Key}, planned.Trigger)
		switch {
		case err != nil:
			trouble(planned.Key, err)
		case !ok || !l.watched && l.Overdue() && time.Since(l.At) < just:
		case l.watched || !slices.ContainsFunc(pending, func(p schedule.Pending) bool { return p.Name == l.job.Name }):
			all = append(all, l)
		}
	}
	return all
}

// isLapsed reports whether a plan that must be watched is not watched, or a plan with a time may have
// no process that waits for it.
func isLapsed(ctx context.Context, h *Host, trigger string) (l Lapse, ok bool, err error) {
	t, awaited := findTrigger(trigger).(Awaited)
	if !awaited { // including plans of other versions
		return l, false, nil
	}
	p, err := apply.ReadUnattended(h.Dirs, h.Key, trigger)
	if err != nil {
		return l, false, err
	}
	job, once := p.Job(h.Key)
	if !once || p.Watch && host.IsLocked(apply.WatchLock(h.Dirs, h.Key, trigger)) {
		return l, false, nil
	}
	at, over, err := t.Due(ctx, h, &p)
	return Lapse{apply.PlanID{Key: h.Key, Trigger: trigger}, at, job, p.Watch}, !over, err
}
