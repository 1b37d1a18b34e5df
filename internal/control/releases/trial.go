package releases

import (
	"context"
	"fmt"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/control/trial"
	"orrery/internal/observe"
	"orrery/internal/site"
)

// Confirm ends the trial of a release: it stays live. If there is none, it returns how the last one ended.
func Confirm(ctx context.Context, c *control.Session, s *site.Site, why string) (*observe.TrialEnd, error) {
	t, err := newChange(ctx, c, s)
	if err != nil {
		return nil, err
	}
	if err := c.CatchUp(ctx, s, t.hosts); err != nil {
		return nil, err
	}
	letGo, err := c.Patiently().Hold(ctx, s, t.hosts)
	if err != nil {
		return nil, err
	}
	defer letGo()
	r, err := t.hosts.Records().Read(ctx)
	if err != nil {
		return nil, err
	}
	if r.Trial == nil {
		return hosts.Verdict(s, r)
	}
	number, before := r.Trial.Release, r
	if err := hosts.MayConfirm(ctx, t.hosts, s.Key(), r.Trial); err != nil {
		return nil, err
	}
	r.Confirm(number)
	r.Ended, r.Trial = trial.End(r.Trial, observe.Confirmed, why), nil
	if err := t.hosts.Records().Write(ctx, r); err != nil {
		return nil, hosts.Unconfirmed(ctx, t.hosts, s.Key(), err, before)
	}
	hosts.Settle(ctx, t.hosts, r)
	control.TellTrialEnd(ctx, c, s, number, observe.Confirmed, why)
	return r.Ended, c.Note(s, "orrery confirm", fmt.Sprintf("release %d is confirmed (%s)", number, why))
}

// ForgetLive ends what was under way of releases when all nodes of a site have ended, on all of its
// hosts. Which were live is kept for the next up.
func ForgetLive(ctx context.Context, f *apply.Fleet) error {
	r, err := f.Records().Read(ctx)
	if err != nil || r.Former == nil && r.Switch == nil && r.Trial == nil && r.Ended == nil {
		return err
	}
	r.Active = r.Resting()
	r.Former, r.Switch, r.Trial, r.Ended = nil, nil, nil, nil
	if err := f.Records().Write(ctx, r); err != nil {
		return err
	}
	return f.Each(func(_ int, h *apply.Steered) error { // last: while it is on trial, it is watched
		_, err := h.State.SavePlan(ctx, apply.UnattendedPlan{Trigger: apply.OnTrial})
		return err
	})
}
