package overdue

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// UnderWay reports a trial, the end of a twin that no process waits for, and the restoring of a
// snapshot. It returns an error if a switch is under way or was interrupted.
func UnderWay(ctx context.Context, c *control.Session, s *site.Site) error {
	f, _, err := c.Reached(ctx, s)
	if err != nil {
		return err
	}
	return UnderWayOn(ctx, c, s, f)
}

// UnderWayOn does the same as UnderWay for hosts that were just reached.
func UnderWayOn(ctx context.Context, c *control.Session, s *site.Site, f *apply.Fleet) error {
	if at, ok := Forgotten(c, s.Key()); ok {
		c.Notice(s.Key(), "twin %s is to end at %s, but the process that waited for that has ended (orrery resume, and whatever changes a site here, sees to it)",
			s.Twin, humanize.Clock(at))
	}
	return c.Call(s).UnderWay(ctx, f)
}
