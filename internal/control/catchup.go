package control

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/site"
)

// Overdue carries out scheduled work whose process was killed before the time came.
type Overdue interface {
	// CatchUp carries out overdue work before a site is changed on its hosts. It reports failures
	// of that work to the caller. It returns an error only if the site cannot be changed, for
	// example because it is a twin that has expired.
	CatchUp(ctx context.Context, c *Session, s *site.Site, f *apply.Fleet) error
}

// CatchUp carries out overdue work if the session has an Overdue.
func (c *Session) CatchUp(ctx context.Context, s *site.Site, f *apply.Fleet) error {
	if c.Overdue == nil {
		return nil
	}
	return c.Overdue.CatchUp(ctx, c, s, f)
}

// WithoutOverdue returns a session that does not check for overdue work. It is used by operations
// that carry out overdue work themselves, or after the check was made.
func (c *Session) WithoutOverdue() *Session {
	b := *c
	b.Overdue = nil
	return &b
}
