package control

import (
	"context"

	"orrery/internal/control/unattended"
	"orrery/internal/journal/hook"
	"orrery/internal/site"
)

// Tell notifies the hooks of a site of an event. Failures of hooks are reported and recorded, and
// have no other effect.
func (c *Session) Tell(ctx context.Context, s *site.Site, e hook.Event) {
	e.Who = Who()
	err := unattended.Notify(ctx, c.Local(), c.Dirs, s, e)
	if err == nil {
		return
	}
	c.Trouble(s.Key(), err)
	if err := c.Note(s, "hooks: "+e.Event, err.Error()); err != nil {
		c.Trouble(s.Key(), err)
	}
}

// TellTrialEnd notifies the hooks how a trial ended.
func TellTrialEnd(ctx context.Context, c *Session, s *site.Site, release int, result, why string) {
	c.Tell(ctx, s, hook.Event{Event: site.TrialEnded, Result: result, Why: why, Release: &release})
}
