package unattended

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control/hosts"
	watching "orrery/internal/control/trial"
	"orrery/internal/host"
	"orrery/internal/journal/hook"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/plan/stand"
	"orrery/internal/problem"
	"orrery/internal/role"
	"orrery/internal/site"
	"orrery/internal/site/event"
)

// BeginTrial begins a trial when its release is live on all hosts. Each host stores its rollback
// plan, and a process on each host watches the trial. Only after that does BeginTrial record the
// trial in place of the interrupted switch. The parameter releases has the sites of the releases
// concerned. The caller holds the lock.
func BeginTrial(ctx context.Context, c *hosts.Connector, f *apply.Fleet, t *observe.Trial,
	releases map[int]*site.Site) error {
	r, err := SaveRollbackPlans(ctx, c, f, t, releases)
	if err != nil {
		return err
	}
	r.Switch, r.Trial = nil, t
	return f.Records().Write(ctx, r)
}

// SaveRollbackPlans makes each host store its rollback plan for a trial, from the current state. It
// returns the records of the releases.
func SaveRollbackPlans(ctx context.Context, c *hosts.Connector, f *apply.Fleet, t *observe.Trial,
	releases map[int]*site.Site) (observe.Releases, error) {
	r, err := f.Records().Read(ctx)
	if err != nil {
		return r, err
	}
	plans, err := rollbackPlans(ctx, c, f, t, releases)
	if err != nil {
		return r, err
	}
	return r, f.ForEach(func(i int, h *apply.HostClient) error {
		_, err := h.State.SavePlan(ctx, plans[i])
		return err
	})
}

// rollbackPlans makes the plans by which each host goes back from a trial.
func rollbackPlans(ctx context.Context, c *hosts.Connector, f *apply.Fleet, t *observe.Trial,
	releases map[int]*site.Site) ([]apply.UnattendedPlan, error) {
	seen, err := f.Observe(ctx)
	if err != nil {
		return nil, err
	}
	for i := range seen {
		seen[i].Releases.Switch, seen[i].Releases.Trial = nil, t
	}
	ended := watching.EndRecord(t, observe.Reverted, "it was not confirmed in time")
	ended.When = time.Now().Add(t.Within).UTC().Truncate(time.Second) // the same time on all hosts
	p, err := release.Switch(c.Site, seen, release.Goal{To: t.Back, Releases: releases, Back: true, Ended: ended})
	if err != nil {
		return nil, err
	}
	live := func() (*site.Site, error) { // the release that is live after the rollback
		for _, s := range p.Steps {
			if s.Kind == plan.CommitSwitch {
				return stand.Released(c.Site, []observe.Host{{Releases: *s.Releases}}, f.Views().Releases())
			}
		}
		return f.Views().Live(ctx, c.Site)
	}
	plans := make([]apply.UnattendedPlan, len(f.All))
	return plans, f.ForEach(func(i int, h *apply.HostClient) error {
		w := apply.UnattendedPlan{Trigger: apply.TriggerTrial, Host: h.Name, Watch: true,
			Intent: &observe.Switch{To: t.Back, End: t.Back, Who: t.Who, Since: ended.When, Alone: true}}
		if c.DecidesTrials() {
			w.Dir = c.Dir
		}
		var err error
		if w.Steps, err = encodeSteps(h, apply.StepsOn(p, h.Name), live); err != nil {
			return err
		}
		for j := range seen[i].Nodes {
			n := &seen[i].Nodes[j]
			if _, on := t.Back[n.Name]; !on || n.Staged || !n.Runs() {
				continue
			}
			_, duties, err := h.Wanted(&n.Node)
			if err != nil {
				return err
			}
			w.Checks = append(w.Checks, apply.DesiredNode{Node: &n.Node, Duties: duties})
		}
		if len(w.Checks) > 0 {
			w.Hooks = hooksFor(c.Site, event.TrialEnded)
		}
		plans[i] = w
		return nil
	})
}

// ReasonUnwatched is the reason recorded when a trial goes back because no process watched it until its end.
const ReasonUnwatched = "it ended while no process watched it"

type trial struct{}

func (trial) Name() string { return apply.TriggerTrial }

// Due returns when the trial ends, if the site has no other host. The stored plan may belong to a
// trial that is over. After a reboot Due reports over, because the nodes must start first.
func (trial) Due(ctx context.Context, h *Host, p *apply.UnattendedPlan) (at time.Time, over bool, err error) {
	r, err := h.Machine.Host("local", h.Key, nil).Releases.Read(ctx)
	if err != nil || r.Trial == nil || p.Dir == "" {
		return at, r.Trial == nil, err
	}
	now := host.Now()
	return now.Calendar.Add(r.Trial.Remaining(now)), r.Trial.Boot != now.Boot, nil
}

// Run watches until the trial is over.
//
// One of several hosts goes back when the time is over, unless it has learned by then that the
// release is confirmed. If a check fails, it records the failure, and the control host then does
// not confirm the release. The host does not go back before the other hosts do.
//
// The only host of a site goes back at once when a check fails, and confirms the release if all
// checks hold.
//
// Run returns an error if the trial did not end well.
func (trial) Run(ctx context.Context, h *Host, part string) error {
	lock, err := LockWatch(ctx, h.Dirs, h.Key, apply.TriggerTrial, h.holder())
	if err != nil {
		return err
	}
	defer lock.Release()
	o := &trialWatch{Host: h}
	if part == OverduePart || part == CatchUpPart {
		o.missed = ReasonUnwatched
	}
	w := &watching.Watch{
		Look: func() (observe.Releases, error) { return h.host.Releases.Read(ctx) },
		// of the control host, only the lock is visible here
		Lives:   func(int) bool { return host.IsLocked(h.Dirs.Lock(h.Key)) },
		Sick:    o.checkNodes,
		Confirm: o.confirm,
		GoBack:  o.rollBack,
		Now:     host.Now,
		Wait:    func(ctx context.Context, d time.Duration) { _ = host.Sleep(ctx, d) },
		Say:     h.Say,
		GiveUp:  part == CatchUpPart,
	}
	r, err := w.Run(ctx)
	if err != nil {
		return err
	}
	s, err := siteByKey(h.Key)
	if err == nil {
		_, err = hosts.TrialResult(s, r)
	}
	return err
}

// A trialWatch is a trial that this host watches.
type trialWatch struct {
	*Host
	bad    int    // consecutive rounds in which a check failed
	missed string // why the checks were not watched until the end, or ""
}

// checkNodes runs the health checks of the nodes on trial on this host. It returns why the only host of a
// site must go back. On a site with several hosts it never returns a reason, because the hosts go
// back only when the time is over.
func (o *trialWatch) checkNodes(ctx context.Context, _ []string) (string, error) {
	r, err := o.host.Releases.Read(ctx)
	if err != nil || r.Trial == nil {
		return "", nil //nolint:nilerr // the next round sees
	}
	if err := o.readPlan(apply.TriggerTrial); err != nil {
		o.Say(err)
		return "", nil
	}
	if missed := cmp.Or(r.Trial.Failed, o.missed); missed != "" {
		return o.ifOnlyHost(missed), nil
	}
	if o.plan.Dir == "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(r.Trial.Remaining(host.Now()), time.Second))
		defer cancel()
	}
	sick := o.unhealthyReason(ctx)
	switch {
	case ctx.Err() != nil:
		return "", nil
	case sick == "":
		o.bad = 0
	default:
		if o.bad++; o.bad >= watching.MaxFailures && o.plan.Dir == "" {
			o.recordFailure(ctx, sick)
		}
	}
	return o.ifOnlyHost(sick), nil
}

// ifOnlyHost returns what if the site has no other host, or "".
func (o *trialWatch) ifOnlyHost(what string) string {
	if o.plan.Dir == "" {
		return ""
	}
	return what
}

// unhealthyReason returns why a node on trial is not in its desired state, or "".
func (o *trialWatch) unhealthyReason(ctx context.Context) string {
	nodes, err := o.host.Nodes.List(ctx)
	if err != nil {
		return "the state of its nodes is unknown: " + err.Error()
	}
	for _, w := range o.plan.Checks {
		if !slices.ContainsFunc(nodes, func(n observe.Node) bool { return n.ID == w.Node.ID && n.Runs() }) {
			return "node " + w.Node.Name + " does not run"
		}
		in, err := o.host.Nodes.Runner(w.Node)
		if err == nil {
			err = role.Probe(ctx, in, w.Duties)
		}
		if err != nil {
			return fmt.Sprintf("node %s is unhealthy: %v", w.Node.Name, err)
		}
	}
	return ""
}

// confirm ends the trial on the only host of a site, after all checks have held.
func (o *trialWatch) confirm(ctx context.Context) error {
	const why = "its health checks held"
	if o.plan.Dir == "" {
		return errors.New("it was not confirmed")
	}
	letGo, err := o.waitForLock(ctx)
	if err != nil {
		return err
	}
	defer letGo()
	r, err := o.host.Releases.Read(ctx)
	if err != nil || r.Trial == nil {
		return err
	}
	number := r.Trial.Release
	r.Confirm(number)
	r.Ended, r.Trial = watching.EndRecord(r.Trial, observe.Confirmed, why), nil
	if err := o.host.Releases.Write(ctx, r); err != nil {
		return err
	}
	if err := o.recordOn(ctx, o.host, fmt.Sprintf("release %d is confirmed (%s)", number, why)); err != nil {
		o.Say(err) // the release is confirmed all the same
	}
	return o.notifyTrialEnd(ctx)
}

// recordFailure records that the release must not be confirmed. It uses Copy, which keeps the State of the
// records, because the failure concerns this host only.
func (o *trialWatch) recordFailure(ctx context.Context, why string) {
	letGo, err := o.host.Runs.Lock(ctx, o.holder())
	if err != nil {
		return // another process is at work; the next round tries again
	}
	defer letGo()
	r, err := o.host.Releases.Read(ctx)
	if err != nil || r.Trial == nil || r.Switch != nil {
		return
	}
	r.Trial.Failed = problem.Truncate(why, 300)
	if err := o.host.Releases.Copy(ctx, r); err != nil {
		o.Say(err)
	}
}

// rollBack goes back from the trial with what is stored on this host. It waits for other processes
// that hold the lock. They may have ended the trial.
func (o *trialWatch) rollBack(ctx context.Context, why string) error {
	letGo, err := o.waitForLock(ctx)
	if err != nil {
		return err
	}
	defer letGo()
	r, err := o.host.Releases.Read(ctx)
	if err != nil || r.Trial == nil {
		return err
	}
	if err := o.readPlan(apply.TriggerTrial); err != nil {
		return err
	}
	if o.fleet != nil { // plan again from the current state
		plans, err := rollbackPlans(ctx, o.call, o.fleet, r.Trial, o.fleet.Views().Sites())
		if err != nil {
			return err
		}
		o.plan = plans[0]
	}
	if r.Switch == nil || !r.Switch.Alone {
		r.Switch = o.plan.Intent
		if err := o.host.Releases.Write(ctx, r); err != nil {
			return err
		}
	}
	steps, err := apply.DecodeSteps(o.plan.Steps)
	if err != nil {
		return err
	}
	for _, s := range steps {
		if s.Kind == plan.CommitSwitch { // keep this host's own records, and those that the other hosts expect here
			records := *s.Releases
			records.Staged, records.ID, records.Past = r.Staged, r.ID, r.Past
			if o.plan.Dir != "" { // otherwise all hosts must record the same
				records.Ended = watching.EndRecord(r.Trial, observe.Reverted, why)
			}
			s.Releases = &records
		}
	}
	if err := o.runSteps(ctx, steps); err != nil {
		return err
	}
	if err := o.notifyTrialEnd(ctx); err != nil {
		o.Say(err)
	}
	return nil
}

// notifyTrialEnd notifies the hooks of the site how the trial ended. Each of several hosts reports only its
// own result, because none knows whether the others succeeded.
func (o *trialWatch) notifyTrialEnd(ctx context.Context) error {
	r, err := o.host.Releases.Read(ctx)
	if err != nil || r.Ended == nil {
		return err
	}
	return o.notify(ctx, hook.Event{Event: event.TrialEnded, Result: r.Ended.Result, Why: r.Ended.Why,
		Release: &r.Ended.Release})
}
