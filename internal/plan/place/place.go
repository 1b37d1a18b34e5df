// Package place decides on which host of a site each node is, or will be. It is pure.
package place

import (
	"cmp"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/plan/vfs"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Assign returns a copy of the site in which every node has a host. It chooses the declared host, or
// else the one that the node is already on, or else the one that has its volumes. Other nodes get
// the host with the fewest nodes from which they must be apart. Among such hosts, Assign chooses the
// one with the largest free share of processors and memory. If a host is unknown, a node that is on
// no other host may be there, and Assign assumes that it is.
//
// A node on a network of virtual functions also gets its function (package vfs).
//
// Nodes are placed in the order of their ids, after the nodes named in first. Placing a subset
// first keeps all other placements stable.
func Assign(s *site.Site, hosts []observe.Host, first ...string) (*site.Site, error) {
	placed := *s
	placed.Nodes = slices.Clone(s.Nodes)
	room := newCapacities(s, hosts)
	locations, unknown := observe.HostsByNode(hosts, s.Stage), firstUnknown(hosts)
	for i := range hosts {
		for _, g := range hosts[i].OutgoingMoves { // it has no other place until the move is finished
			if to := g.To; !g.Staged && len(locations[g.Name]) == 0 &&
				slices.ContainsFunc(hosts, func(h observe.Host) bool { return h.Name == to }) {
				locations[g.Name] = []string{to}
			}
		}
		if r := hosts[i].Restoring; r != nil { // its volumes are there and wait for it
			for _, name := range r.Nodes {
				if len(locations[name]) == 0 {
					locations[name] = []string{hosts[i].Name}
				}
			}
		}
	}
	if unknown == "" {
		for name, host := range HostsByData(s, hosts) {
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
				return nil, observe.DuplicateError(n.Name, on[0], on[1])
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
		room.assign(n, n.Host)
	}
	early := map[string]int{}
	for _, name := range first {
		early[name] = -1
	}
	slices.SortFunc(homeless, func(a, b *site.Node) int {
		return cmp.Or(cmp.Compare(early[a.Name], early[b.Name]), cmp.Compare(a.ID, b.ID), strings.Compare(a.Name, b.Name))
	})
	for _, n := range homeless {
		host, ok := room.bestHost(n)
		if !ok {
			why, _ := room.refusal(n)
			return nil, problem.New(problem.Mistake, "node %s has no host: %s", n.Name,
				strings.Replace(why, "no other host", "none", 1)).
				Try("declare another [host.…], lower its limits, or set host = … to overcommit one")
		}
		n.Host = host
		room.assign(n, host)
	}
	vfs.Place(&placed, hosts)
	return &placed, nil
}

// firstUnknown returns the first unknown host by name, or "" if there is none.
func firstUnknown(hosts []observe.Host) (name string) {
	for i := range hosts {
		if hosts[i].Unknown && (name == "" || hosts[i].Name < name) {
			name = hosts[i].Name
		}
	}
	return name
}

// SpreadViolations returns the groups of a placed site that must be spread over hosts but are not.
func SpreadViolations(placed *site.Site, hosts []observe.Host) []SpreadViolation {
	room := newCapacities(placed, hosts)
	for i := range placed.Nodes {
		if n := &placed.Nodes[i]; room.byName[n.Host] != nil {
			room.assign(n, n.Host)
		}
	}
	return room.spreadViolations()
}
