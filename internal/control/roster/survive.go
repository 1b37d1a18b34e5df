package roster

import (
	"context"

	"orrery/internal/control"
	"orrery/internal/plan/place"
	"orrery/internal/site"
)

// Survive returns which nodes find room on other hosts, and which do not, for every choice of the
// given number of lost hosts.
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
