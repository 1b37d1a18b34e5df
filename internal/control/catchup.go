package control

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/site"
)

// Overdue does what was to happen by itself and did not, because the process that waited for it was killed.
type Overdue interface {
	// CatchUp does what is overdue before a site is changed on its hosts. What goes wrong with it is
	// said; the error is why the site cannot be changed, such as that it is a twin that has expired.
	CatchUp(ctx context.Context, c *Session, s *site.Site, f *apply.Fleet) error
}

// CatchUp does what is overdue, if anybody is asked.
func (c *Session) CatchUp(ctx context.Context, s *site.Site, f *apply.Fleet) error {
	if c.Overdue == nil {
		return nil
	}
	return c.Overdue.CatchUp(ctx, c, s, f)
}

// WithoutOverdue returns a session that does not ask what is overdue: what it does is, or that was settled.
func (c *Session) WithoutOverdue() *Session {
	b := *c
	b.Overdue = nil
	return &b
}
