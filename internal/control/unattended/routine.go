package unattended

import (
	"context"
	"errors"
	"sync"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control/hosts"
	"orrery/internal/host"
	"orrery/internal/journal/hook"
	"orrery/internal/observe/routine"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/event"
	"orrery/internal/text/sanitize"
)

// A SiteWork does what routines do with a whole site, as it was declared when it was last brought up
// on this machine. Packages above this one implement it.
type SiteWork interface {
	// Hosts returns the hosts of the site that answer.
	Hosts(ctx context.Context) (*apply.Fleet, error)
	// Do takes a backup or a snapshot, and removes those that the site does not keep. It returns the
	// name of what it has made.
	Do(ctx context.Context, routine string) (made string, err error)
	// Look returns what is wrong with nodes, hosts and disks.
	Look(ctx context.Context) ([]Finding, error)
}

// Timers cannot express every interval and time of day, and a timer that is missed is lost. So they
// start routines more often than those are due.
const (
	longTick  = 15 * time.Minute
	shortTick = time.Minute // for intervals shorter than an hour
)

func tickOf(when site.Schedule) time.Duration {
	if when.Every < time.Hour {
		return shortTick
	}
	return longTick
}

// retryInterval is the time after which a failed or unfinished attempt is repeated.
const retryInterval = time.Hour

// isDue reports whether it is time for another attempt.
func isDue(when site.Schedule, r routine.Record, now time.Time) bool {
	early := tickOf(when) / 2 // otherwise the interval would become longer by up to a tick
	if r.Begun.After(r.Done) && now.Sub(r.Begun) < min(when.Every, retryInterval)-early {
		return false
	}
	if when.At != "" {
		early = 0
	}
	return !now.Before(when.Next(r.Done.In(now.Location())).Add(-early))
}

// SaveRoutinePlans makes this machine do for the site what its site file schedules, and ends that on
// all other hosts. If end is set, it ends on all of them.
func SaveRoutinePlans(ctx context.Context, c *hosts.Connector, f *apply.Fleet, end bool) error {
	p := apply.UnattendedPlan{Trigger: apply.TriggerRoutine}
	if s := c.Site; !end && s.Twin == "" {
		p.Every, p.When = map[string]time.Duration{}, map[string]site.Schedule{}
		for part, when := range map[string]site.Schedule{routine.Backup: s.Backup.Schedule,
			routine.Snapshot: s.Snapshot} {
			if when.Every > 0 {
				p.Every[part], p.When[part] = tickOf(when), when
			}
		}
		if s.Watch.Every > 0 {
			p.Every[routine.Watch] = s.Watch.Every
		}
		if !p.Empty() {
			p.Hooks = hooksFor(s, event.Alerting...)
		}
	}
	if !p.Empty() && !hosts.IncludesLocal(c.Site) {
		c.Notice("this machine is not a host of site %s, so nothing is scheduled: run orrery up on one of its hosts",
			c.Site.Name)
	}
	return savePlans(ctx, c, f, func(h *apply.HostClient) apply.UnattendedPlan {
		if !h.Local() {
			return apply.UnattendedPlan{Trigger: apply.TriggerRoutine}
		}
		return p
	})
}

// savePlans stores a plan on each host, and reports the hosts' notes.
func savePlans(ctx context.Context, c *hosts.Connector, f *apply.Fleet,
	of func(h *apply.HostClient) apply.UnattendedPlan) error {
	var mutex sync.Mutex
	return f.ForEach(func(_ int, h *apply.HostClient) error {
		p := of(h)
		p.Host = h.Name
		notes, err := h.State.SavePlan(ctx, p)
		mutex.Lock()
		defer mutex.Unlock()
		for _, note := range notes {
			if len(c.Site.Hosts) > 1 {
				note = "host " + h.Name + ": " + note
			}
			c.Notice("%s", note)
		}
		return err
	})
}

type routineTrigger struct{}

func (routineTrigger) Name() string { return apply.TriggerRoutine }

// Run does a part of the plan if it is due. On a site with several hosts, another host may have been
// the last one on which it was brought up, and still have a plan. The host that first records an
// attempt on all hosts, under the lock of the site, makes it.
func (routineTrigger) Run(ctx context.Context, h *Host, part string) error {
	if h.plan.Every[part] == 0 {
		return nil // the timer of a former plan
	}
	lock, err := LockWatch(ctx, h.Dirs, h.Key, apply.TriggerRoutine+"-"+part, h.holder())
	if problem.Is(err, problem.Locked) {
		return nil // the process that a former timer has started is at work
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	if part == routine.Watch {
		return h.watch(ctx)
	}
	when := h.plan.When[part]
	if !isDue(when, h.routine(ctx, part), time.Now()) {
		return nil
	}
	a := Attempt{Routine: part, Host: h.plan.Host, Notify: func(e hook.Event) error { return h.notify(ctx, e) },
		Do: func() (string, error) { return h.Work.Do(ctx, part) }}
	f, err := h.Work.Hosts(ctx)
	if err == nil {
		var claimed bool
		if claimed, err = h.claim(ctx, f, &a, when); err == nil && !claimed {
			return nil
		}
	}
	if err != nil {
		f, a.Do = h.ownFleet(), func() (string, error) { return "", err }
	}
	made, failed := a.Run(ctx, f)
	if failed != nil {
		_ = h.recordOn(ctx, h.host, part+": "+failed.Error()) // the caller reports it
		return failed
	}
	h.Tell("%s %s of site %s", part, made, h.Key)
	return nil
}

// claim begins an attempt on all hosts, unless another host has begun one or a process is changing
// the site.
func (h *Host) claim(ctx context.Context, f *apply.Fleet, a *Attempt, when site.Schedule) (claimed bool, err error) {
	letGo, err := f.LockAll(ctx, h.holder())
	if problem.Is(err, problem.Locked) {
		return false, nil // the next tick tries again
	}
	if err != nil {
		return false, err
	}
	defer letGo()
	latest, _ := LatestRoutine(ctx, f, a.Routine) // a record that cannot be read is replaced
	if !isDue(when, latest, time.Now()) {
		return false, nil
	}
	return true, a.begin(ctx, f)
}

// ownFleet returns a fleet of this host.
func (h *Host) ownFleet() *apply.Fleet {
	return apply.SingleHost(&apply.HostClient{Name: h.plan.Host, Host: h.host})
}

// routine returns this host's record of a routine. If it cannot be read, routine reports that.
func (h *Host) routine(ctx context.Context, name string) routine.Record {
	r, err := h.host.State.Routine(ctx, name)
	if err != nil {
		h.Say(err)
	}
	return latestOf(time.Now(), r)
}

// LatestRoutine returns the record of the last attempt that any of the hosts knows of. If the records
// of some hosts cannot be read, it returns an error and the last one of the others.
func LatestRoutine(ctx context.Context, f *apply.Fleet, name string) (routine.Record, error) {
	all := make([]routine.Record, len(f.All))
	err := f.ForEach(func(i int, h *apply.HostClient) (err error) {
		all[i], err = h.State.Routine(ctx, name)
		return err
	})
	return latestOf(time.Now(), all...), err
}

// maxSkew is how far a record may be ahead of this host's clock.
const maxSkew = time.Minute

// latestOf returns the record of the last attempt. It ignores records from the future: the clock of a
// host is wrong, or was.
func latestOf(now time.Time, all ...routine.Record) (latest routine.Record) {
	for _, r := range all {
		if r.Begun.After(latest.Begun) && !r.Begun.After(now.Add(maxSkew)) && !r.Done.After(r.Begun) {
			latest = r
		}
	}
	return latest
}

// An Attempt is one attempt at a routine.
type Attempt struct {
	Routine string
	Host    string // the name of the host that makes it
	Do      func() (made string, err error)
	Notify  func(hook.Event) error // notifies the hooks of the site

	now *routine.Record // its record, once it has begun
}

// begin records on all hosts that the attempt begins.
func (a *Attempt) begin(ctx context.Context, f *apply.Fleet) error {
	now, _ := LatestRoutine(ctx, f, a.Routine) // a record that cannot be read is replaced
	now.Begun, now.Host = time.Now().UTC(), a.Host
	a.now = &now
	return a.save(ctx, f)
}

func (a *Attempt) save(ctx context.Context, f *apply.Fleet) error {
	return f.ForEach(func(_ int, h *apply.HostClient) error { return h.State.SaveRoutine(ctx, a.Routine, *a.now) })
}

// failedEvents are the events of routines that fail.
var failedEvents = map[string]string{routine.Backup: event.BackupFailed,
	routine.Snapshot: event.SnapshotFailed}

// maxWhy limits the recorded length of an error.
const maxWhy = 300

// Run makes the attempt, and records on the hosts that it begins and how it ends. It notifies the
// hooks when the first attempt fails, and when one succeeds again.
func (a *Attempt) Run(ctx context.Context, f *apply.Fleet) (made string, err error) {
	if a.now == nil {
		if err := a.begin(ctx, f); err != nil {
			return "", err
		}
	}
	made, err = a.Do()
	before := a.now.Failures
	*a.now = a.now.Ended(made, shortened(err))
	err = errors.Join(err, a.save(context.WithoutCancel(ctx), f))
	e := hook.Event{Event: failedEvents[a.Routine], Result: "failed", Why: a.now.Why}
	switch {
	case before > 0 && a.now.Failures == 0:
		e.Result = recovered
	case before > 0 || a.now.Failures == 0:
		return made, err
	}
	return made, errors.Join(err, a.Notify(e))
}

// shortened returns an error as one short line.
func shortened(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(problem.Truncate(sanitize.Line(err.Error()), maxWhy))
}

// recovered is the result in an event that something is right again.
const recovered = "recovered"

// recordLook records on this host whether a look at the site has failed.
func (h *Host) recordLook(ctx context.Context, err error) {
	before := h.routine(ctx, routine.Watch)
	if err == nil && before.Failures == 0 {
		return // nothing has changed that anyone reads
	}
	before.Begun, before.Host = time.Now().UTC(), h.plan.Host
	if err := h.host.State.SaveRoutine(ctx, routine.Watch, before.Ended("", shortened(err))); err != nil {
		h.Say(err)
	}
}

// isChanging reports whether a process is changing the site.
func (h *Host) isChanging() bool { return host.IsLocked(h.Dirs.Lock(h.Key)) }
