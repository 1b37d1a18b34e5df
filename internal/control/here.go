package control

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/site"
	"orrery/internal/site/selector"
)

// SelectedHosts returns the hosts of a site, and the names of the nodes that match selectors, or nil
// for all nodes.
func SelectedHosts(ctx context.Context, c *Session, s *site.Site, selectors []string) (*apply.Fleet, map[string]bool,
	error) {
	chosen, err := SelectNodes(s, selectors)
	if err != nil {
		return nil, nil, err
	}
	f, err := c.Hosts(ctx, s)
	return f, chosen, err
}

// SelectNodes returns the names of the nodes that match selectors, or nil for all nodes.
func SelectNodes(s *site.Site, selectors []string) (map[string]bool, error) {
	if len(selectors) == 0 {
		return nil, nil
	}
	nodes, err := selector.Select(s, selectors...)
	if err != nil {
		return nil, err
	}
	chosen := map[string]bool{}
	for _, n := range nodes {
		chosen[n.Name] = true
	}
	return chosen, nil
}

// SelectedNames returns the names of the nodes that match selectors, in the order of the site file,
// or nil for all nodes.
func SelectedNames(s *site.Site, selectors []string) ([]string, error) {
	chosen, err := SelectNodes(s, selectors)
	if err != nil || chosen == nil {
		return nil, err
	}
	var names []string
	for i := range s.Nodes {
		if chosen[s.Nodes[i].Name] {
			names = append(names, s.Nodes[i].Name)
		}
	}
	return names, nil
}
