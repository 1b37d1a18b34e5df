package status

import (
	"context"

	"orrery/internal/control"
	"orrery/internal/site"
	"orrery/internal/site/selector"
)

// Read returns the selected nodes in the order of the site file, including instances beside the
// live ones. Without selectors, nodes that exist but are not declared follow.
func Read(ctx context.Context, c *control.Session, s *site.Site, selectors []string) (*Status, error) {
	if err := c.CheckAllowedOn(s); err != nil {
		return nil, err // the nodes' records are not for other users
	}
	f, silent, err := c.ReachableHosts(ctx, s)
	if err != nil {
		return nil, err
	}
	if s, err = f.Views().ForDisplay(ctx, s); err != nil {
		return nil, err
	}
	nodes, err := selector.Select(s, selectors...)
	if err != nil {
		return nil, err
	}
	whole := s
	if len(selectors) > 0 { // no selector can match a node that is not declared
		whole = nil
	}
	all, err := Of(ctx, f, nodes, whole)
	if err == nil {
		all.Silent = silent
	}
	return all, err
}
