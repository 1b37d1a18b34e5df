// Package place says on which host of a site each node is, or would be. It is pure.
package place

import (
	"cmp"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Place gives a copy of the site in which every node has a host: the declared one, else the one it is
// already on, else the one with the largest share of processors and memory still free. Where there is a host of which nothing is known, a node that is
// on none of the others may be there, and is taken to be.
func Place(s *site.Site, hosts []observe.Host) (*site.Site, error) {
	placed := *s
	placed.Nodes = slices.Clone(s.Nodes)
	room := newRooms(s, hosts)
	there, unknown := observe.Whereabouts(hosts), ""
	for i := range hosts {
		if hosts[i].Unknown {
			unknown = cmp.Or(unknown, hosts[i].Name)
		}
	}
	var homeless []*site.Node
	for i := range placed.Nodes {
		n := &placed.Nodes[i]
		if n.Host == "" {
			on := append(there[n.Name], unknown)
			if len(on) > 2 {
				return nil, observe.OnTwo(n.Name, on[0], on[1])
			}
			n.Host = on[0]
		}
		if n.Host == unknown && unknown != "" {
			continue
		}
		if n.Host == "" {
			homeless = append(homeless, n)
			continue
		}
		if _, ok := room.byName[n.Host]; !ok {
			return nil, problem.New(problem.Mistake, "node %s is on host %q, which was not observed", n.Name, n.Host)
		}
		room.take(n)
	}
	for _, n := range homeless {
		host, ok := room.best(n)
		if !ok {
			return nil, problem.New(problem.Mistake, "node %s has no host: none has %.3g cpus and %d MiB free", n.Name, n.Limits.Cpus, n.Limits.Memory>>20).
				Try("declare another [host.…], lower its limits, or say host = … to overcommit one")
		}
		n.Host = host
		room.take(n)
	}
	return &placed, nil
}
