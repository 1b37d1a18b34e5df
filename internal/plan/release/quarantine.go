package release

import (
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/selector"
)

// quarantines are what proofs depend on, by release.
type quarantines map[int]*quarantine

// postponeProofs finds the members that cannot be healthy in quarantine, because a node that they need,
// directly or indirectly, does not answer there. That node was live and has released its volumes,
// or it is live, or it does not run. Such members are proven when they are live.
func (d *switchPlanner) postponeProofs() error {
	d.quarantines = quarantines{}
	if d.goal.Recover {
		return nil
	}
	for _, m := range d.order {
		if m.hasServed() {
			continue
		}
		q := d.quarantines[m.to.Release]
		if q == nil {
			q = &quarantine{
				site: m.site, peers: &d.peers, silent: silentNodes(d.spans.hosts, m.to.Release, d.members),
				known: map[string]bool{},
				asked: map[string]bool{},
			}
			d.quarantines[m.to.Release] = q
		}
		var err error
		m.postponed, err = q.needsSilent(m.node)
		if err == nil && !m.postponed {
			err = q.addRequired(m.node)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isProvenInQuarantine reports whether the member's instance is proven in quarantine, and not only when it is
// live.
func (m *member) isProvenInQuarantine() bool { return !m.hasServed() && !m.postponed }

// mustAnswer reports whether a proof depends on the member's instance, so that it must answer in
// quarantine.
func (all quarantines) mustAnswer(m *member) bool {
	q := all[m.to.Release]
	return q != nil && q.asked[m.name]
}

// A quarantine is what the proofs of one release depend on.
type quarantine struct {
	site   *site.Site
	peers  *selector.Peers
	silent map[string]bool // nodes whose instance does not answer there
	known  map[string]bool // node -> whether it needs a silent one
	asked  map[string]bool // nodes on which proofs depend
}

// silentNodes returns the nodes of a release whose instances do not answer. Nodes that were never staged
// are not included: everything was proven without them.
func silentNodes(hosts []observe.Host, release int, members map[string]*member) map[string]bool {
	all := map[string]bool{}
	for i := range hosts {
		for j := range hosts[i].Nodes {
			if n := &hosts[i].Nodes[j]; n.Release == release && !willAnswer(n, members[n.Name]) {
				all[n.Name] = true
			}
		}
	}
	return all
}

// willAnswer reports whether an instance runs in quarantine with all the volumes that it had when it
// was staged, or will be started there.
func willAnswer(n *observe.Node, m *member) bool {
	if !n.Staged || isActive(n) || n.HoldsExclusive() || lacksVolumes(&n.Node) {
		return false
	}
	return n.Runs() || m != nil && m.to == n
}

// needsSilent reports whether a node needs a silent one, directly or indirectly.
func (q *quarantine) needsSilent(n *site.Node) (bool, error) {
	if known, ok := q.known[n.Name]; ok || len(q.silent) == 0 {
		return known, nil
	}
	q.known[n.Name] = false // cuts a cycle, which package check refuses
	peers, err := q.peers.Of(q.site, n, q.site.RolesOf(n))
	if err != nil {
		return false, err
	}
	needs := false
	for _, peer := range peers {
		silent, err := q.needsSilent(peer)
		if err != nil {
			return false, err
		}
		needs = needs || silent || q.silent[peer.Name]
	}
	q.known[n.Name] = needs
	return needs, nil
}

// addRequired records the nodes that a node needs, directly or indirectly, since its proof depends on them.
func (q *quarantine) addRequired(n *site.Node) error {
	peers, err := q.peers.Of(q.site, n, q.site.RolesOf(n))
	if err != nil {
		return err
	}
	for _, peer := range peers {
		if q.asked[peer.Name] {
			continue
		}
		q.asked[peer.Name] = true
		if err := q.addRequired(peer); err != nil {
			return err
		}
	}
	return nil
}
