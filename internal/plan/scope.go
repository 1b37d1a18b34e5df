package plan

import (
	"slices"

	"orrery/internal/observe"
	"orrery/internal/site"
)

// inScope returns the hosts with only the nodes and networks of the site's stage: the live ones, or
// those in the quarantine of one release. The plan does not touch the others.
func inScope(s *site.Site, hosts []observe.Host) []observe.Host {
	networks := s.Key()
	if s.Stage != 0 {
		networks = site.Quarantine(networks, s.Stage)
	}
	some := slices.Clone(hosts)
	for i := range some {
		h := &some[i]
		h.Nodes = slices.DeleteFunc(slices.Clone(h.Nodes), func(n observe.Node) bool {
			return n.Staged != (s.Stage != 0) || n.Staged && n.Release != s.Stage
		})
		h.Networks = slices.DeleteFunc(slices.Clone(h.Networks), func(n observe.Network) bool { return n.Site != networks })
	}
	return some
}
