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
	t, err := newSwitchOp(ctx, c, s)
	if err != nil {
		return nil, err
	}
	if err := c.CatchUp(ctx, s, t.hosts); err != nil {
		return nil, err
	}
	letGo, err := c.WaitingForLocks().LockSite(ctx, s, t.hosts)
	if err != nil {
		return nil, err
	}
	defer letGo()
	r, err := t.hosts.Records().Read(ctx)
	if err != nil {
		return nil, err
	}
	if r.Trial == nil {
		return hosts.TrialResult(s, r)
	}
	number, before := r.Trial.Release, r
	if err := hosts.CheckConfirmable(ctx, t.hosts, s.Key(), r.Trial); err != nil {
		return nil, err
	}
	r.Confirm(number)
	r.Ended, r.Trial = trial.EndRecord(r.Trial, observe.Confirmed, why), nil
	if err := t.hosts.Records().Write(ctx, r); err != nil {
		return nil, hosts.WithdrawConfirmation(ctx, t.hosts, s.Key(), err, before)
	}
	hosts.RecordConfirmed(ctx, t.hosts, r)
	control.NotifyTrialEnd(ctx, c, s, number, observe.Confirmed, why)
	return r.Ended, c.Note(s, "orrery confirm", fmt.Sprintf("release %d is confirmed (%s)", number, why))
}

// ClearSwitches ends rollback options, switches and trials after all nodes of a site were destroyed,
// on all of its hosts. It keeps which releases were live, for the next up.
func ClearSwitches(ctx context.Context, f *apply.Fleet) error {
	r, err := f.Records().Read(ctx)
	if err != nil || r.Former == nil && r.Switch == nil && r.Trial == nil && r.Ended == nil {
		return err
	}
	r.Active = r.RestartTargets()
	r.Former, r.Switch, r.Trial, r.Ended = nil, nil, nil, nil
	if err := f.Records().Write(ctx, r); err != nil {
		return err
	}
	// last, because a trial is watched as long as it is on record
	return f.ForEach(func(_ int, h *apply.HostClient) error {
		_, err := h.State.SavePlan(ctx, apply.UnattendedPlan{Trigger: apply.TriggerTrial})
		return err
	})
}
