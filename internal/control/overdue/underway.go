package overdue

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// ReportPending reports a trial, the end of a twin that no process waits for, and the restoring of a
// snapshot. It returns an error if a switch is under way or was interrupted.
func ReportPending(ctx context.Context, c *control.Session, s *site.Site) error {
	f, _, err := c.ReachableHosts(ctx, s)
	if err != nil {
		return err
	}
	return ReportPendingOn(ctx, c, s, f)
}

// ReportPendingOn does the same as ReportPending for hosts that were just reached.
func ReportPendingOn(ctx context.Context, c *control.Session, s *site.Site, f *apply.Fleet) error {
	if at, ok := UnwatchedExpiry(c, s.Key()); ok {
		c.Notice(s.Key(), "twin %s expires at %s, but the process that waited for that has ended (orrery resume, or any change to a site on this host, starts it again)",
			s.Twin, humanize.Time(at))
	}
	return c.Connector(s).ReportPending(ctx, f)
}
