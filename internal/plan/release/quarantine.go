package release

import (
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/selector"
)

// quarantines are what proofs depend on, by release.
type quarantines map[int]*quarantine

// postpone finds the members that cannot be healthy in quarantine, because a node that they need,
// directly or through others, does not answer there: it was live and has let go of its volumes, it
// is live, or it does not run. Such members are proven when they are live.
func (d *draft) postpone() error {
	d.quarantines = quarantines{}
	if d.goal.Recover {
		return nil
	}
	for _, m := range d.order {
		if m.served() {
			continue
		}
		q := d.quarantines[m.to.Release]
		if q == nil {
			q = &quarantine{
				site: m.site, peers: &d.peers, silent: silent(d.spans.hosts, m.to.Release, d.members), known: map[string]bool{},
				asked: map[string]bool{},
			}
			d.quarantines[m.to.Release] = q
		}
		var err error
		m.postponed, err = q.needsSilent(m.node)
		if err == nil && !m.postponed {
			err = q.ask(m.node)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// proves reports whether the member's instance is proven in quarantine, and not only when it is live.
func (m *member) proves() bool { return !m.served() && !m.postponed }

// asked reports whether a proof depends on the member's instance, so that it has to answer in quarantine.
func (all quarantines) asked(m *member) bool {
	q := all[m.to.Release]
	return q != nil && q.asked[m.name]
}

// A quarantine is what proofs depend on of one release.
type quarantine struct {
	site   *site.Site
	peers  *selector.Peers
	silent map[string]bool // nodes whose instance does not answer there
	known  map[string]bool // by node: whether it needs one of them
	asked  map[string]bool // nodes on which proofs depend
}

// silent finds the instances of a release that do not answer. One that was never staged is none of
// them: what was staged without it was proven without it.
func silent(hosts []observe.Host, release int, members map[string]*member) map[string]bool {
	all := map[string]bool{}
	for i := range hosts {
		for j := range hosts[i].Nodes {
			if n := &hosts[i].Nodes[j]; n.Release == release && !answers(n, members[n.Name]) {
				all[n.Name] = true
			}
		}
	}
	return all
}

// answers reports whether an instance runs in quarantine with all that it had when it was staged,
// or is woken there.
func answers(n *observe.Node, m *member) bool {
	if !n.Staged || active(n) || n.Holds() || bereft(&n.Node) {
		return false
	}
	return n.Runs() || m != nil && m.to == n
}

// needsSilent reports whether a node needs, directly or through others, one that does not answer.
func (q *quarantine) needsSilent(n *site.Node) (bool, error) {
	if known, ok := q.known[n.Name]; ok || len(q.silent) == 0 {
		return known, nil
	}
	q.known[n.Name] = false // a circle, which check refuses, is cut here
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

// ask takes down the nodes that a node needs, directly or through others: its proof depends on them.
func (q *quarantine) ask(n *site.Node) error {
	peers, err := q.peers.Of(q.site, n, q.site.RolesOf(n))
	if err != nil {
		return err
	}
	for _, peer := range peers {
		if q.asked[peer.Name] {
			continue
		}
		q.asked[peer.Name] = true
		if err := q.ask(peer); err != nil {
			return err
		}
	}
	return nil
}
