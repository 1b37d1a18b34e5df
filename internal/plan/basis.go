package plan

import (
	"slices"

	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A basis is what a plan is made from: the site, what was seen of its hosts, and the goal. No step changes it.
type basis struct {
	site   *site.Site
	goal   Goal
	hosts  map[string]*observe.Host
	maker  *spec.Maker         // of the site,
	makers map[int]*spec.Maker // and of its releases, see makerOf
	blind  bool                // of some host nothing is known; then
	there  map[string][]string // the others that have a node
	homes  map[string]string   // hosts of nodes before, by their names: what is there was made by that
	stuck  map[string]bool     // nodes of which nobody can know where they are, since a move was cut short
}

func newBasis(s *site.Site, hosts []observe.Host, goal Goal) *basis {
	b := &basis{
		site: s, goal: goal, hosts: byName(hosts), maker: spec.NewMaker(s), makers: map[int]*spec.Maker{},
		blind: slices.ContainsFunc(hosts, func(h observe.Host) bool { return h.Unknown }), stuck: map[string]bool{},
	}
	if b.blind {
		b.there = observe.Whereabouts(hosts, s.Stage)
	}
	return b
}

func byName(hosts []observe.Host) map[string]*observe.Host {
	all := make(map[string]*observe.Host, len(hosts))
	for i := range hosts {
		all[hosts[i].Name] = &hosts[i]
	}
	return all
}

// makerOf returns the Maker that knows the roles of a node.
func (b *basis) makerOf(n *site.Node) *spec.Maker {
	of, ok := b.goal.Releases[n.Release]
	if n.Release == 0 || b.site.Stage != 0 || !ok {
		return b.maker
	}
	if _, made := b.makers[n.Release]; !made {
		b.makers[n.Release] = spec.NewMaker(of.Placed(b.site.Homes()))
		b.makers[n.Release].MTUs = b.maker.MTUs
	}
	return b.makers[n.Release]
}

// unknown reports whether nothing is known of a host.
func (b *basis) unknown(host string) bool {
	h, ok := b.hosts[host]
	return ok && h.Unknown
}

// certain reports whether it is known where a node is. As long as nothing is known of some host,
// that is so only of what is there on another, or was until a restore took it down: whatever is not
// may be on that host, and must not be made a second time, since its addresses and volumes have one
// holder.
func (b *basis) certain(n *site.Node) bool {
	if b.unknown(n.Host) || b.stuck[n.Name] {
		return false
	}
	return !b.blind || len(b.there[n.Name]) > 0 || b.hosts[n.Host].Restored(n.Name, b.hosts)
}

// concerned returns the names of the nodes concerned for which something holds, in the order of the site.
func (b *basis) concerned(which func(*site.Node) bool) (names []string) {
	for i := range b.site.Nodes {
		if n := &b.site.Nodes[i]; b.goal.concerns(n.Name) && which(n) {
			names = append(names, n.Name)
		}
	}
	return names
}

// drained reports whether nodes are kept away from a host.
func (b *basis) drained(host string) bool {
	h, ok := b.hosts[host]
	return ok && h.Drained != nil
}

// barred reports whether a node cannot be where it is declared, since its host is drained. What is
// there stays until it is moved.
func (b *basis) barred(n *site.Node) bool {
	if !b.drained(n.Host) {
		return false
	}
	_, ok := b.hosts[n.Host].Node(n.Name)
	return !ok
}
