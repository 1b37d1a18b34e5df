package control

import (
	"context"
	"fmt"

	"orrery/internal/control/unattended"
	"orrery/internal/hook"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Tell lets the hooks of a site know of something. What goes wrong with that is said, and changes nothing else.
func (c *Session) Tell(ctx context.Context, s *site.Site, e hook.Event) {
	e.Who = Who()
	err := unattended.Notify(ctx, c.machine(), c.Dirs, s, e)
	if err == nil {
		return
	}
	c.trouble(s.Key(), err)
	if err := c.Note(s, "hooks: "+e.Event, err.Error()); err != nil {
		c.trouble(s.Key(), err)
	}
}

// TellTrialEnd lets the hooks know how a trial has ended.
func (c *Session) TellTrialEnd(ctx context.Context, s *site.Site, release int, result, why string) {
	c.Tell(ctx, s, hook.Event{Event: site.TrialEnded, Result: result, Why: why, Release: &release})
}

// tellFailedSwitch lets the hooks know of a switch that was tried and failed. One that was refused has changed nothing.
func (t *change) tellFailedSwitch(ctx context.Context, err error) {
	result, tried := map[int]string{int(problem.Reverted): observe.Reverted, int(problem.HalfWay): "half-way"}[problem.Exit(err)]
	if !tried {
		return
	}
	e := hook.Event{Event: site.SwitchFailed, Result: result, Why: t.hosts.Redact(fmt.Sprint(err))}
	for _, number := range t.to {
		e.Release = &number
		break
	}
	t.Tell(ctx, t.site, e)
}
