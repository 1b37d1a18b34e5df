package plan

import (
	"slices"

	"orrery/internal/site"
	"orrery/internal/site/selector"
)

// awaitPeers makes the configure step of each waiting node need the last steps of the nodes that must be
// healthy before it.
func (d *sitePlanner) awaitPeers(all []waitingNode) error {
	a := &peerWaiter{sitePlanner: d, configured: map[string]bool{}, known: map[string][]int{}}
	for _, w := range all {
		a.configured[w.node.Name] = true
	}
	for _, w := range all {
		steps, err := a.stepsBefore(w.node)
		if err != nil {
			return err
		}
		d.Steps[w.step].Needs = append(d.Steps[w.step].Needs, steps...)
	}
	return nil
}

// A peerWaiter determines which steps must be done before a node is configured.
type peerWaiter struct {
	*sitePlanner
	configured map[string]bool // nodes that wait themselves
	peers      selector.Peers
	known      map[string][]int // node -> result of before
}

// stepsBefore returns the last steps of the nodes that must be healthy before a node. A peer that is not
// configured in this run does not wait for its own peers. The node waits for these instead, since
// the peer works only as well as they do.
func (a *peerWaiter) stepsBefore(n *site.Node) ([]int, error) {
	if steps, ok := a.known[n.Name]; ok {
		return steps, nil
	}
	a.known[n.Name] = nil // ends a cycle, which two releases of one site may form together
	peers, err := a.peers.Of(a.site, n, a.makerOf(n).Site.RolesOf(n))
	if err != nil {
		return nil, err
	}
	var steps []int
	for _, peer := range peers {
		if step, ok := a.last[peer.Name]; ok {
			steps = append(steps, step)
		}
		if a.configured[peer.Name] {
			continue
		}
		further, err := a.stepsBefore(peer)
		if err != nil {
			return nil, err
		}
		steps = append(steps, further...)
	}
	slices.Sort(steps)
	steps = slices.Compact(steps)
	a.known[n.Name] = steps
	return steps, nil
}
