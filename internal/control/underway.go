package control

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/control/hosts"
	"orrery/internal/control/register"
	"orrery/internal/phrase"
	"orrery/internal/site"
)

// UnderWay tells of a trial, of the end of a twin, and of a snapshot that was being put back. A switch that is under way, or was interrupted, is the error.
func (c *Session) UnderWay(ctx context.Context, s *site.Site) error {
	f, _, err := c.Reached(ctx, s)
	if err != nil {
		return err
	}
	return c.UnderWayOn(ctx, s, f)
}

// UnderWayOn tells the same by hosts that were reached just now.
func (c *Session) UnderWayOn(ctx context.Context, s *site.Site, f *apply.Fleet) error {
	if hosts.Far(s) {
		return c.Call(s).UnderWay(ctx, f)
	}
	r, err := f.AsReached(ctx)
	if err != nil {
		return err
	}
	c.Call(s).TellCutShort(ctx, f)
	switch {
	case r.Trial == nil:
	case c.watched(s) && r.Trial.ByHand:
		c.notice(s.Key(), "release %d is on trial until %s; unless it is confirmed by then (orrery confirm), it goes back to release %s",
			r.Trial.Release, phrase.Clock(r.Trial.Until), register.ReleaseNames(r.Trial.Back))
	case c.watched(s):
		c.notice(s.Key(), "release %d is on trial until %s; then it is confirmed or goes back to release %s",
			r.Trial.Release, phrase.Clock(r.Trial.Until), register.ReleaseNames(r.Trial.Back))
	default:
		c.notice(s.Key(), "release %d is on trial until %s, but nobody watches over it: the process that did has ended (orrery resume, and whatever changes the site, sees to it)",
			r.Trial.Release, phrase.Clock(r.Trial.Until))
	}
	if twin, so := c.Forgotten(s.Key()); so {
		c.notice(s.Key(), "twin %s is to end at %s, but the process that waited for that has ended (orrery resume, and whatever changes a site here, sees to it)",
			s.Twin, phrase.Clock(twin.Expires))
	}
	return hosts.Interrupted(s, r)
}
