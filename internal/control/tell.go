package control

import (
	"context"

	"orrery/internal/control/unattended"
	"orrery/internal/journal/hook"
	"orrery/internal/site"
	"orrery/internal/site/event"
)

// NotifyHooks notifies the hooks of a site of an event. Failures of hooks are reported and recorded, and
// have no other effect.
func (c *Session) NotifyHooks(ctx context.Context, s *site.Site, e hook.Event) {
	e.Who = UserName()
	err := unattended.Notify(ctx, c.Local(), c.Dirs, s, e)
	if err == nil {
		return
	}
	c.Trouble(s.Key(), err)
	if err := c.Note(s, "hooks: "+e.Event, err.Error()); err != nil {
		c.Trouble(s.Key(), err)
	}
}

// NotifyTrialEnd notifies the hooks how a trial ended.
func NotifyTrialEnd(ctx context.Context, c *Session, s *site.Site, release int, result, why string) {
	c.NotifyHooks(ctx, s, hook.Event{Event: event.TrialEnded, Result: result, Why: why, Release: &release})
}
