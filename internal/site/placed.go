package site

import "slices"

// HostByNode returns the host of each placed node, keyed by node name.
func (s *Site) HostByNode() map[string]string {
	homes := map[string]string{}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Host != "" {
			homes[n.Name] = n.Host
		}
	}
	return homes
}

// WithHosts returns the site with a host for each node that has none. Argument homes has the hosts by
// node name. Templates are rendered from such a site. The plan of a node, its files and the
// comparison with them are therefore consistent.
func (s *Site) WithHosts(homes map[string]string) *Site {
	lacks := func(n Node) bool { return n.Host == "" && homes[n.Name] != "" }
	if !slices.ContainsFunc(s.Nodes, lacks) {
		return s
	}
	placed := *s
	placed.Nodes = slices.Clone(s.Nodes)
	for i := range placed.Nodes {
		if n := &placed.Nodes[i]; n.Host == "" {
			n.Host = homes[n.Name]
		}
	}
	return &placed
}
