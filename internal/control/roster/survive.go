package roster

import (
	"context"

	"orrery/internal/control"
	"orrery/internal/plan/place"
	"orrery/internal/site"
)

// Survive tells which nodes of a site find room, and which do not, whichever of its hosts are lost,
// so many at once.
func Survive(ctx context.Context, c *control.Session, s *site.Site, lost int) ([]place.Loss, error) {
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	seen, err := c.Seen(ctx, f)
	if err != nil {
		return nil, err
	}
	live, err := f.Views().Released(s, seen)
	if err != nil {
		return nil, err
	}
	return place.Survive(live, seen, lost)
}
