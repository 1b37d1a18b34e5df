package plan

import (
	"orrery/internal/observe"
	"orrery/internal/plan/place"
	"orrery/internal/site"
)

// PlacedAsLive gives the site as Released does, with a host for every node.
func PlacedAsLive(s *site.Site, hosts []observe.Host, releases map[int]*site.Site) (*site.Site, error) {
	released, err := Released(s, hosts, releases)
	if err != nil {
		return nil, err
	}
	return place.Place(released, hosts)
}

// Build plans only the layers that nodes need and that their hosts do not have.
func Build(s *site.Site, hosts []observe.Host, goal Goal) (*Plan, error) {
	placed, err := PlacedAsLive(s, hosts, goal.Releases)
	if err != nil {
		return nil, err
	}
	d := newDraft(placed, hosts, goal)
	for i := range placed.Nodes {
		if n := &placed.Nodes[i]; goal.concerns(n.Name) {
			d.layer(d.hosts[n.Host], n)
		}
	}
	return d.sorted(), nil
}
