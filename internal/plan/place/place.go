// Package place decides on which host of a site each node is, or will be. It is pure.
package place

import (
	"cmp"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Place returns a copy of the site in which every node has a host: the declared one, else the one it is
// already on, else the one that has its volumes, else the one with the fewest nodes from which it must be
// apart and, of these, with the largest share of processors and memory still free. If nothing is known of a
// host, a node that is on none of the others may be there, and is taken to be.
//
// Nodes are placed in the order of their ids, those first that are named: whoever makes only these
// finds all others where they were the next time.
func Place(s *site.Site, hosts []observe.Host, first ...string) (*site.Site, error) {
	placed := *s
	placed.Nodes = slices.Clone(s.Nodes)
	room := newRooms(s, hosts)
	locations, unknown := observe.Whereabouts(hosts, s.Stage), anyUnknown(hosts)
	for i := range hosts {
		for _, g := range hosts[i].Given { // it has no other place until it is settled whose it is
			if to := g.To; !g.Staged && len(locations[g.Name]) == 0 &&
				slices.ContainsFunc(hosts, func(h observe.Host) bool { return h.Name == to }) {
				locations[g.Name] = []string{to}
			}
		}
		if r := hosts[i].Restoring; r != nil { // what it had waits for it there
			for _, name := range r.Nodes {
				if len(locations[name]) == 0 {
					locations[name] = []string{hosts[i].Name}
				}
			}
		}
	}
	if unknown == "" {
		for name, host := range Data(s, hosts) {
			if len(locations[name]) == 0 {
				locations[name] = []string{host}
			}
		}
	}
	var homeless []*site.Node
	for i := range placed.Nodes {
		n := &placed.Nodes[i]
		if n.Host == "" {
			on := append(locations[n.Name], unknown)
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
		room.take(n, n.Host)
	}
	early := map[string]int{}
	for _, name := range first {
		early[name] = -1
	}
	slices.SortFunc(homeless, func(a, b *site.Node) int {
		return cmp.Or(cmp.Compare(early[a.Name], early[b.Name]), cmp.Compare(a.ID, b.ID), strings.Compare(a.Name, b.Name))
	})
	for _, n := range homeless {
		host, ok := room.best(n)
		if !ok {
			why, _ := room.why(n)
			return nil, problem.New(problem.Mistake, "node %s has no host: %s", n.Name,
				strings.Replace(why, "no other host", "none", 1)).
				Try("declare another [host.…], lower its limits, or say host = … to overcommit one")
		}
		n.Host = host
		room.take(n, host)
	}
	return &placed, nil
}

// anyUnknown returns the first host, by name, of which nothing is known; "": there is none.
func anyUnknown(hosts []observe.Host) (name string) {
	for i := range hosts {
		if hosts[i].Unknown && (name == "" || hosts[i].Name < name) {
			name = hosts[i].Name
		}
	}
	return name
}

// Crowds returns the groups of a site that are to be spread over hosts and are not, as its nodes are placed.
func Crowds(placed *site.Site, hosts []observe.Host) []Crowd {
	room := newRooms(placed, hosts)
	for i := range placed.Nodes {
		if n := &placed.Nodes[i]; room.byName[n.Host] != nil {
			room.take(n, n.Host)
		}
	}
	return room.crowded()
}
