package roster

import (
	"context"

	"orrery/internal/control"
	"orrery/internal/plan/place"
	"orrery/internal/site"
)

// SimulateLosses returns which nodes find room on other hosts, and which do not, for every choice of the
// given number of lost hosts.
func SimulateLosses(ctx context.Context, c *control.Session, s *site.Site, lost int) ([]place.HostLoss, error) {
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	seen, err := c.Observe(ctx, f)
	if err != nil {
		return nil, err
	}
	live, err := f.Views().Released(s, seen)
	if err != nil {
		return nil, err
	}
	return place.SimulateLoss(live, seen, lost)
}
