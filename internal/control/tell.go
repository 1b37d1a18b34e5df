package control

import (
	"context"
	"time"

	"orrery/internal/hook"
	"orrery/internal/host/later"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Tell lets the hooks of a site know of something. What goes wrong with that is said, and changes nothing else.
func (c *Session) Tell(ctx context.Context, s *site.Site, e hook.Event) {
	e.Who, e.Time = Who(), time.Now()
	some, err := hook.Post(c.Dirs, s, e)
	if err == nil && some {
		err = c.Local().Later(ctx, later.Call{Name: "hooks-" + s.Key(), Args: []string{"hook", s.Key()}})
	}
	if err == nil {
		return
	}
	err = problem.New(problem.Failed, "the hooks of site %s cannot be notified of %s", s.Name, e.Event).Because(err)
	c.Trouble(s.Key(), err)
	if err := c.Note(s, "hooks: "+e.Event, err.Error()); err != nil {
		c.Trouble(s.Key(), err)
	}
}

// TellTrialEnd lets the hooks know how a trial has ended.
func TellTrialEnd(ctx context.Context, c *Session, s *site.Site, release int, result, why string) {
	c.Tell(ctx, s, hook.Event{Event: site.TrialEnded, Result: result, Why: why, Release: &release})
}
