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

// Punctual is how late what waits for a time may be: it is at work then.
const Punctual = 15 * time.Second

// Late is the part of a plan that is overdue, and that nothing has waited for: all of it, and what was to be
// seen by then has not been.
const Late = "late"

// A Lapse is a plan of this machine that something should wait for and nothing does: a process was killed, or
// the machine was off.
type Lapse struct {
	apply.Planned
	At time.Time // when the plan is due at the latest, or zero if that is not for this host to say

	job     schedule.Job
	watched bool // and not waited for
}

// Overdue reports whether the time of the plan is over.
func (l *Lapse) Overdue() bool { return !l.At.IsZero() && !time.Now().Before(l.At) }

// Mend has the plan waited for again. What is overdue starts at once.
func (l *Lapse) Mend(ctx context.Context, m here.Machine) error {
	job := l.job
	if l.Overdue() {
		job.Args = append(slices.Clone(job.Args), Late)
	}
	return m.Later(ctx, job)
}

// Lapses returns the lapses on this machine, but not of plans whose time was over just now, for which what has
// waited may be at work. Only root sees them.
func Lapses(ctx context.Context, m here.Machine, dirs host.Dirs, just time.Duration,
	trouble func(key string, err error)) (all []Lapse) {
	pending, err := m.Waiting()
	if err != nil || m.Allowed() != nil {
		return nil
	}
	for _, planned := range apply.Unattended(dirs, "*") {
		l, ok, err := lapsed(ctx, &Host{Machine: m, Dirs: dirs, Key: planned.Key}, planned.Trigger)
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

// lapsed reports whether nothing watches for a plan, or may not wait for its time.
func lapsed(ctx context.Context, h *Host, trigger string) (l Lapse, ok bool, err error) {
	t, awaited := find(trigger).(Awaited)
	if !awaited { // or of another version
		return l, false, nil
	}
	p, err := apply.ReadUnattended(h.Dirs, h.Key, trigger)
	if err != nil {
		return l, false, err
	}
	job, once := p.Job(h.Key)
	if !once || p.Watch && host.Held(apply.WatchLock(h.Dirs, h.Key, trigger)) {
		return l, false, nil
	}
	at, over, err := t.Due(ctx, h, &p)
	return Lapse{apply.Planned{Key: h.Key, Trigger: trigger}, at, job, p.Watch}, !over, err
}
