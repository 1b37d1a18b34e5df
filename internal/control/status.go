package control

import (
	"context"

	"orrery/internal/control/status"
	"orrery/internal/site"
	"orrery/internal/site/selector"
)

// Status gives the nodes that selectors mean, in the order in which they are declared, with those beside the live ones.
func Status(ctx context.Context, c *Session, s *site.Site, selectors []string) (*status.Status, error) {
	if err := c.AllowedOn(s); err != nil {
		return nil, err // the records of nodes are nobody else's to read
	}
	f, silent, err := c.Reached(ctx, s)
	if err != nil {
		return nil, err
	}
	if s, err = f.Shown(ctx, s); err != nil {
		return nil, err
	}
	nodes, err := selector.Select(s, selectors...)
	if err != nil {
		return nil, err
	}
	all, err := status.Of(ctx, f, nodes)
	if err == nil {
		all.Silent = silent
	}
	return all, err
}
