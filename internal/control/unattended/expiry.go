package unattended

import (
	"context"
	"time"

	"orrery/internal/apply"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/text/humanize"
)

// expiry destroys a twin when its time is over. Its plan is written together with the record of the
// twin: see TwinHost.Save.
type expiry struct{ dated }

func (expiry) Name() string { return apply.TriggerExpiry }

// Run destroys this host's part of a twin whose time is over. It waits until other processes have
// released the twin's lock.
func (expiry) Run(ctx context.Context, h *Host, _ string) error {
	s, err := siteByKey(h.Key)
	if err != nil {
		return err
	}
	if time.Since(h.plan.At) > StartGrace {
		h.Tell("twin %s expired at %s and was not destroyed in time; destroying it now", h.Key, humanize.Time(h.plan.At))
	}
	letGo, err := h.waitForLock(ctx)
	if err != nil {
		return err
	}
	seen, err := h.host.State.Observe(ctx, nil)
	if err == nil {
		err = h.runSteps(ctx, plan.Down(s, []observe.Host{seen}, plan.Goal{Volumes: true}).Steps)
	}
	letGo()
	if err != nil {
		return err
	}
	if err := h.recordOn(ctx, h.Machine.Host(h.plan.Host, s.Name, nil), "twin "+s.Twin+" ended"); err != nil {
		return err
	}
	// last, because the record shows that there is something to destroy
	if err := h.host.Twins.Forget(ctx); err != nil {
		return err
	}
	h.Tell("Twin %s of %s is gone", s.Twin, s.Name)
	return nil
}
