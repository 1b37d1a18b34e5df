package unattended

import (
	"context"
	"time"

	"orrery/internal/apply"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/text/humanize"
)

// The end of a twin is planned with its record: see TwinHost.Save.
type expiry struct{ dated }

func (expiry) Name() string { return apply.AtExpiry }

// Run ends what this host has of a twin whose time is over. Whoever else changes the twin is waited for.
func (expiry) Run(ctx context.Context, h *Host, _ string) error {
	s, err := keyed(h.Key)
	if err != nil {
		return err
	}
	if time.Since(h.plan.At) > Punctual {
		h.Tell("twin %s expired at %s, and nobody destroyed it; it is destroyed now", h.Key, humanize.Clock(h.plan.At))
	}
	letGo, err := h.await(ctx)
	if err != nil {
		return err
	}
	seen, err := h.host.State.Observe(ctx, nil)
	if err == nil {
		err = h.do(ctx, plan.Down(s, []observe.Host{seen}, plan.Goal{Volumes: true}).Steps)
	}
	letGo()
	if err != nil {
		return err
	}
	if err := h.noteOn(ctx, h.Machine.Host(h.plan.Host, s.Name, nil), "twin "+s.Twin+" ended"); err != nil {
		return err
	}
	if err := h.host.Twins.Forget(ctx); err != nil { // last, because it is what shows that there is something to destroy
		return err
	}
	h.Tell("Twin %s of %s is gone", s.Twin, s.Name)
	return nil
}
