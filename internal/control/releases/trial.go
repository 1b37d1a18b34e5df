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

// Confirm ends the trial of a release, which stays live. If there is no trial, Confirm returns how
// the last one ended.
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

// ForgetLive ends rollback options, switches and trials after all nodes of a site were destroyed,
// on all of its hosts. It keeps which releases were live, for the next up.
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
	// last, because a trial is watched as long as it is on record
	return f.Each(func(_ int, h *apply.Steered) error {
		_, err := h.State.SavePlan(ctx, apply.UnattendedPlan{Trigger: apply.OnTrial})
		return err
	})
}
