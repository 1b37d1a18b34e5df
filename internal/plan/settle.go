package plan

import (
	"fmt"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/plan/handover"
	"orrery/internal/plan/stand"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// resolveMoves decides how interrupted moves of the selected nodes are finished. The site must be the
// one that is live.
func resolveMoves(s *site.Site, hosts []observe.Host, goal Goal) *handover.Resolutions {
	if s.Stage != 0 {
		return &handover.Resolutions{After: hosts}
	}
	b := newPlanInput(s, hosts, goal)
	b.homes = observe.HostByNode(hosts, 0)
	receivable := func(to *observe.Host, g *observe.OutgoingMove) bool { // the host has the layers of a declared node
		n := receivableNode(b, g)
		return n != nil && !slices.ContainsFunc(n.Layers(), func(digest string) bool { return !to.Layers[digest] })
	}
	ends := handover.Resolve(hosts, goal.selects, receivable)
	ends.Homes = b.homes
	return ends
}

// receivableNode returns the node that can be made from the received data of a given node, or nil. The
// site must declare the node with the same id, engine and layers. An undeclared node is known only
// from its own host's records, and another host makes no node from those.
func receivableNode(b *planInput, g *observe.OutgoingMove) *spec.Node {
	if g.Staged {
		e, why, err := asDeclared(b, &g.Node.Node)
		if err != nil || why != "" {
			return nil
		}
		return e.Node
	}
	n, ok := b.site.Node(g.Name)
	if !ok {
		return nil
	}
	wanted, err := b.makerOf(n).Node(n)
	if err != nil || wanted.ID != g.ID || wanted.Engine != g.Engine || stand.LayerChange(&g.Node.Node, wanted) != "" {
		return nil
	}
	return wanted
}

// asDeclared returns a node in quarantine as its release made it on its current host, or on the host
// that gave it away.
func asDeclared(b *planInput, current *spec.Node) (e *stand.DeclaredNode, why string, err error) {
	of := b.goal.Releases[current.Release]
	if of != nil {
		of = of.WithHosts(b.homes)
	}
	return stand.AsDeclared(current, of, b.maker.MTUs)
}

// finishMoves plans how interrupted moves are finished. Later steps for these nodes wait for that.
func finishMoves(d *planBuilder, m *handover.Resolutions) {
	d.homes = m.Homes
	for _, u := range m.Blocked {
		d.stuck[u.Node] = true
		d.Warnings = append(d.Warnings, fmt.Sprintf("node %s is not changed: %s", u.Node, u.Why))
	}
	for i := range m.All {
		finishMove(d, &m.All[i])
	}
}

func finishMove(d *planBuilder, h *handover.Handover) {
	const why = "a move was interrupted"
	old := &spec.Node{Site: d.maker.Key(), Name: h.Node, ID: h.ID}
	if h.Given != nil {
		old = &h.Given.Node.Node
	}
	s := Step{Subject: h.Node, Old: old}
	if h.Drops {
		s.Needs = []int{d.add(Step{Kind: DiscardNode, Host: h.To, Peer: h.From, Subject: h.Node, Old: old, Reason: why})}
		d.settled[h.Node] = append(d.settled[h.Node], s.Needs...)
	}
	if h.Given == nil {
		return
	}
	s.Digest, s.Runs, s.Configured, s.Active = h.Given.Sum, h.Given.Resume, h.Given.Configured, h.Given.Active
	switch h.Resolution {
	case handover.CleanUp:
		cleanUpMoved(d, h.From, h.To, old)
		return
	case handover.Reclaim:
		s.Kind, s.Host, s.Peer, s.Reason = ReclaimNode, h.From, h.To,
			why+": host "+h.Given.To+" did not receive all of it"
	case handover.Receive:
		s.Kind, s.Host, s.Peer, s.Reason = ReceiveNode, h.To, h.From,
			why+": host "+h.From+" handed it over, and all of it is here"
		s.Node = receivableNode(d.planInput, h.Given)
	}
	step := d.add(s)
	d.settled[h.Node] = append(d.settled[h.Node], step)
	if h.Resolution == handover.Receive {
		d.arrivals[h.To] = append(d.arrivals[h.To], step)
		cleanUpMoved(d, h.From, h.To, old, step)
	}
}

// cleanUpMoved plans to remove what a host keeps of a node that has left it.
func cleanUpMoved(d *planBuilder, from, to string, n *spec.Node, needs ...int) int {
	return d.add(Step{Kind: CleanUpNode, Host: from, Peer: to, Subject: n.Name, Old: n, Reason: "it is on host " + to,
		Needs: needs})
}
