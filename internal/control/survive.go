package control

import (
	"context"

	"orrery/internal/plan"
	"orrery/internal/site"
)

// Survive tells which nodes of a site find room, and which do not, whichever of its hosts are lost, so many at once.
func (c *Session) Survive(ctx context.Context, s *site.Site, lost int) ([]plan.Loss, error) {
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	seen, err := c.Seen(ctx, f)
	if err != nil {
		return nil, err
	}
	return plan.Survive(s, seen, f.Releases(), lost)
}
