package selector

import "orrery/internal/site"

// Peers determines which nodes must be healthy before others. It caches the nodes of each selector.
type Peers struct{ meant map[peersKey][]*site.Node }

// A peersKey is the key of the cache: a selector in a site.
type peersKey struct {
	site *site.Site
	text string
}

// Of returns the other nodes of a site that must be healthy before a node with some roles.
func (p *Peers) Of(s *site.Site, n *site.Node, roles []*site.Role) ([]*site.Node, error) {
	if p.meant == nil {
		p.meant = map[peersKey][]*site.Node{}
	}
	var peers []*site.Node
	for _, role := range roles {
		for _, text := range role.NeedsHealthy {
			key := peersKey{s, text}
			if _, ok := p.meant[key]; !ok {
				nodes, err := Select(s, text)
				if err != nil {
					return nil, err
				}
				p.meant[key] = nodes
			}
			for _, peer := range p.meant[key] {
				if peer.Name != n.Name {
					peers = append(peers, peer)
				}
			}
		}
	}
	return peers, nil
}
