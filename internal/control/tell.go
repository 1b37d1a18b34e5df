package control

import (
	"context"

	"orrery/internal/control/unattended"
	"orrery/internal/journal/hook"
	"orrery/internal/site"
)

// Tell lets the hooks of a site know of something. What goes wrong with that is said, and changes nothing else.
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

// TellTrialEnd lets the hooks know how a trial has ended.
func TellTrialEnd(ctx context.Context, c *Session, s *site.Site, release int, result, why string) {
	c.Tell(ctx, s, hook.Event{Event: site.TrialEnded, Result: result, Why: why, Release: &release})
}
