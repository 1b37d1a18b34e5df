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
	_, seen, live, err := control.ObserveReleased(ctx, c, s)
	if err != nil {
		return nil, err
	}
	return place.SimulateLoss(live, seen, lost)
}
