package plan

import (
	"orrery/internal/observe"
	"orrery/internal/plan/place"
	"orrery/internal/plan/stand"
	"orrery/internal/site"
)

// PlacedAsLive returns the site as stand.Released does, with a host for every node. The nodes named
// in first are placed first.
func PlacedAsLive(s *site.Site, hosts []observe.Host, releases map[int]*site.Site, first ...string) (*site.Site,
	error) {
	released, err := stand.Released(s, hosts, releases)
	if err != nil {
		return nil, err
	}
	return place.Assign(released, hosts, first...)
}

// Build plans only the layers that nodes need and their hosts lack.
func Build(s *site.Site, hosts []observe.Host, goal Goal) (*Plan, error) {
	placed, err := PlacedAsLive(s, hosts, goal.Releases, goal.nodeNames()...)
	if err != nil {
		return nil, err
	}
	d := newLayerPlanner(newPlanBuilder(placed, hosts, goal))
	for i := range placed.Nodes {
		if n := &placed.Nodes[i]; goal.selects(n.Name) && !d.isUnknown(n.Host) {
			d.planNode(d.hosts[n.Host], n)
		}
	}
	return d.sorted(), nil
}
