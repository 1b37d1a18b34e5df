package plan

import (
	"slices"

	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A planInput is the input of a plan: the site, the observed hosts and the goal. No step changes it.
type planInput struct {
	site   *site.Site
	goal   Goal
	hosts  map[string]*observe.Host
	maker  *spec.Builder         // of the site
	makers map[int]*spec.Builder // of its releases, see makerOf
	blind  bool                  // some host is unknown; only then is there set
	there  map[string][]string   // node -> the known hosts that have it
	homes  map[string]string     // node -> its current host, for which it was made
	stuck  map[string]bool       // nodes whose place is unknown, because a move was interrupted
}

func newPlanInput(s *site.Site, hosts []observe.Host, goal Goal) *planInput {
	b := &planInput{
		site: s, goal: goal, hosts: byName(hosts), maker: spec.NewBuilder(s), makers: map[int]*spec.Builder{},
		blind: slices.ContainsFunc(hosts, func(h observe.Host) bool { return h.Unknown }), stuck: map[string]bool{},
	}
	if b.blind {
		b.there = observe.HostsByNode(hosts, s.Stage)
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

// makerOf returns the spec.Builder for the release that a node belongs to.
func (b *planInput) makerOf(n *site.Node) *spec.Builder {
	of, ok := b.goal.Releases[n.Release]
	if n.Release == 0 || b.site.Stage != 0 || !ok {
		return b.maker
	}
	if _, made := b.makers[n.Release]; !made {
		b.makers[n.Release] = spec.NewBuilder(of.WithHosts(b.site.HostByNode()))
		b.makers[n.Release].MTUs = b.maker.MTUs
	}
	return b.makers[n.Release]
}

// isUnknown reports whether a host could not be observed.
func (b *planInput) isUnknown(host string) bool {
	h, ok := b.hosts[host]
	return ok && h.Unknown
}

// isLocated reports whether it is known where a node is. While some host is unknown, that holds only
// for a node that is on another host, or was until a restore destroyed it. Any other node may be on
// the unknown host. It must not be made a second time, since its addresses and volumes have one
// holder.
func (b *planInput) isLocated(n *site.Node) bool {
	if b.isUnknown(n.Host) || b.stuck[n.Name] {
		return false
	}
	return !b.blind || len(b.there[n.Name]) > 0 || b.hosts[n.Host].RestorePending(n.Name, b.hosts)
}

// selectedNames returns the names of the selected nodes that satisfy which, in the site's order.
func (b *planInput) selectedNames(which func(*site.Node) bool) (names []string) {
	for i := range b.site.Nodes {
		if n := &b.site.Nodes[i]; b.goal.selects(n.Name) && which(n) {
			names = append(names, n.Name)
		}
	}
	return names
}

// isDrained reports whether a host takes no new nodes.
func (b *planInput) isDrained(host string) bool {
	h, ok := b.hosts[host]
	return ok && h.Drained != nil
}

// isExcluded reports whether a node cannot be made on its declared host, because that host is drained.
// A node that is already there stays until it is moved.
func (b *planInput) isExcluded(n *site.Node) bool {
	if !b.isDrained(n.Host) {
		return false
	}
	_, ok := b.hosts[n.Host].Node(n.Name)
	return !ok
}
