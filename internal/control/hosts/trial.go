package hosts

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control/here"
	"orrery/internal/control/register"
	"orrery/internal/control/trial"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/plan/stand"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// BeginTrial lets a trial begin when its release is live on all hosts: each of them keeps how it goes back by itself, and somebody watches there. Only when all of them have that, what is on record is
// the trial, and no longer a switch that was interrupted. r is what is on record, and releases are the sites of the releases concerned. The caller holds the lock.
func (c *Call) BeginTrial(ctx context.Context, f *apply.Fleet, t *observe.Trial, releases map[int]*site.Site) error {
	r, err := c.SaveRollbackPlans(ctx, f, t, releases)
	if err != nil {
		return err
	}
	r.Switch, r.Trial = nil, t
	return f.WriteReleases(r)
}

// SaveRollbackPlans has each host store how it goes back from a trial, from what there is now. It returns what is on record.
func (c *Call) SaveRollbackPlans(ctx context.Context, f *apply.Fleet, t *observe.Trial, releases map[int]*site.Site) (observe.Releases, error) {
	r, err := f.ReadReleases(ctx)
	if err != nil {
		return r, err
	}
	seen, err := f.Observe(ctx)
	if err != nil {
		return r, err
	}
	for i := range seen {
		seen[i].Releases.Switch, seen[i].Releases.Trial = nil, t
	}
	ended := trial.End(t, observe.Reverted, "nobody confirmed it in time")
	ended.When = time.Now().Add(t.Within).UTC().Truncate(time.Second) // the same on all hosts
	p, err := release.Switch(c.Site, seen, release.Goal{To: t.Back, Releases: releases, Back: true, Ended: ended})
	if err != nil {
		return r, err
	}
	live := func() (*site.Site, error) { // when it is over
		for _, s := range p.Steps {
			if s.Kind == plan.CommitSwitch {
				return stand.Released(c.Site, []observe.Host{{Releases: *s.Releases}}, f.Releases())
			}
		}
		return f.Live(ctx, c.Site)
	}
	return r, f.Each(func(i int, h *apply.Steered) error {
		w := apply.UnattendedPlan{Trigger: apply.OnTrial, Host: h.Name, Watch: true, Intent: &observe.Switch{To: t.Back, End: t.Back, Who: t.Who, Since: ended.When, Alone: true}}
		var err error
		if w.Steps, err = encoded(h, apply.StepsOn(p, h.Name), live); err != nil {
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
			w.Checks = append(w.Checks, apply.Want{Node: &n.Node, Duties: duties})
		}
		if len(w.Checks) > 0 {
			w.Hooks = hooksOn(c.Site, site.TrialEnded)
		}
		_, err = h.State.SavePlan(ctx, w)
		return err
	})
}

// encoded gives steps with all that doing them takes.
func encoded(h *apply.Steered, steps []*plan.Step, live func() (*site.Site, error)) (all []json.RawMessage, err error) {
	for _, s := range steps {
		whole, err := h.Pack(s, live)
		if err != nil {
			return nil, err
		}
		text, err := plan.Encode(whole)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}

// Unconfirmed lets the trial go on where a host could not be told that it is over: each host goes back by itself then, and so must all.
func Unconfirmed(f *apply.Fleet, key string, cause error, was observe.Releases) error {
	if len(f.All) == 1 {
		return cause
	}
	left := f.Each(func(_ int, h *apply.Steered) error {
		is, err := h.Releases.Read(context.Background())
		if err != nil || is.State() == was.State() {
			return err
		}
		return h.Releases.Copy(was)
	})
	return problem.New(problem.HalfWay, "release %d could not be confirmed on all hosts; unless it still is by %s, each host goes back", was.Trial.Release, phrase.Clock(was.Trial.Until)).At(key).
		Because(errors.Join(cause, left)).Try("when all hosts answer, orrery confirm or orrery rollback")
}

// Settle lets hosts have on record that all of them were told that a release is confirmed: from then on, none of them can say that it has gone back instead. If one does not get that, the
// release is confirmed all the same.
func Settle(f *apply.Fleet, r observe.Releases) {
	if len(f.All) == 1 {
		return
	}
	ended := *r.Ended
	ended.Settled = true
	r.Ended = &ended
	_ = f.WriteReleases(r)
}

// Verdict says how the last trial ended. That it did not end well is the error.
func Verdict(s *site.Site, r observe.Releases) (*observe.TrialEnd, error) {
	switch {
	case r.Switch != nil:
		return nil, problem.New(problem.HalfWay, "a switch to release %s was interrupted", register.ReleaseNames(r.Switch.To)).At(s.Key()).
			Try("orrery up brings the set to one release")
	case r.Ended == nil:
		return nil, problem.New(problem.Mistake, "no release is on trial").At(s.Key()).Try("orrery switch --confirm-within 10m begins one")
	case r.Ended.Result == observe.Reverted:
		return r.Ended, problem.New(problem.Reverted, "release %d has gone back: %s", r.Ended.Release, r.Ended.Why).At(s.Key())
	}
	return r.Ended, nil
}

// WatchAgain lets somebody watch over each trial on this machine over which nobody does.
func WatchAgain(ctx context.Context, m here.Machine, dirs host.Dirs, trouble func(key string, err error)) {
	for _, p := range apply.Unattended(dirs, "*") {
		if p.Trigger != apply.OnTrial {
			continue
		}
		key := p.Key
		r, err := m.Host("local", key, nil).Releases.Read(context.Background())
		if err == nil && r.Trial != nil && !host.Held(TrialLock(dirs, key)) {
			job, _ := (&apply.UnattendedPlan{Trigger: p.Trigger}).Job(key)
			err = m.Later(ctx, job)
		}
		if err != nil {
			trouble(key, err)
		}
	}
}
