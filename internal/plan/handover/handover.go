package handover

import (
	"fmt"
	"slices"

	"orrery/internal/observe"
)

// An Resolution is how a move ends.
type Resolution int

// The ends of moves.
const (
	Receive Resolution = iota // the other host makes the node from the received data
	CleanUp                   // the other host has made the node: the first one removes what it kept
	Reclaim                   // the first host owns the node again
	Discard                   // the received data is removed, since no host has given the node
)

// A Handover is how an interrupted move is finished.
type Handover struct {
	Resolution
	Node     string
	ID       int
	Given    *observe.OutgoingMove // nil if no host has given the node
	From, To string                // hosts
	Drops    bool                  // the received data is removed first
}

// A Blocked node must wait, since its owner cannot be determined.
type Blocked struct{ Node, Why string }

// Resolutions are how all interrupted moves of the selected nodes are finished.
type Resolutions struct {
	All     []Handover
	Blocked []Blocked
	After   []observe.Host    // the hosts afterwards
	Homes   map[string]string // node -> its host before

	hosts []observe.Host
}

// Resolve decides how interrupted moves of the selected nodes are finished. fits reports whether a
// host can make a node from the received data.
func Resolve(hosts []observe.Host, concerns func(node string) bool,
	fits func(to *observe.Host, g *observe.OutgoingMove) bool) *Resolutions {
	e := &Resolutions{After: hosts, hosts: hosts}
	if !slices.ContainsFunc(hosts, func(h observe.Host) bool { return len(h.OutgoingMoves)+len(h.IncomingMoves) > 0 }) {
		return e
	}
	e.After = slices.Clone(hosts)
	for i := range e.After {
		h := &e.After[i]
		h.Nodes, h.OutgoingMoves, h.IncomingMoves = slices.Clone(h.Nodes), nil, nil
	}
	for i := range hosts {
		for j := range hosts[i].OutgoingMoves {
			if g := &hosts[i].OutgoingMoves[j]; concerns(g.Name) {
				e.resolveOutgoing(&hosts[i], g, fits)
			} else {
				e.After[i].OutgoingMoves = append(e.After[i].OutgoingMoves, *g)
			}
		}
	}
	for i := range hosts {
		for j := range hosts[i].IncomingMoves {
			if a := &hosts[i].IncomingMoves[j]; concerns(a.Name) {
				e.resolveArrival(i, a)
			} else {
				e.After[i].IncomingMoves = append(e.After[i].IncomingMoves, *a)
			}
		}
	}
	return e
}

func hostByName(hosts []observe.Host, name string) *observe.Host {
	if i := slices.IndexFunc(hosts, func(h observe.Host) bool { return h.Name == name }); i >= 0 {
		return &hosts[i]
	}
	return nil
}

// resolveOutgoing decides which host owns a node that was given.
func (e *Resolutions) resolveOutgoing(from *observe.Host, g *observe.OutgoingMove,
	fits func(to *observe.Host, g *observe.OutgoingMove) bool) {
	h := Handover{Resolution: Reclaim, Node: g.Name, ID: g.ID, Given: g, From: from.Name, To: g.To}
	to := hostByName(e.hosts, g.To)
	switch {
	case to == nil: // removing a host from the site declares that nothing is left on it
		h.To = ""
	case to.Unknown:
		after := hostByName(e.After, from.Name)
		after.OutgoingMoves = append(after.OutgoingMoves, *g)
		e.Blocked = append(e.Blocked, Blocked{g.Name,
			fmt.Sprintf("host %s handed it over to host %s, whose state is unknown",
				from.Name, g.To)})
		return
	default:
		a, came := to.IncomingMove(g.ID)
		if hasNode(to, g) {
			h.Resolution = CleanUp
		} else if h.Drops = came; came && a.Whole && a.Sum == g.Sum && fits(to, g) {
			h.Resolution, h.Drops = Receive, false
		}
	}
	e.All = append(e.All, h)
	stopped := g.Node
	stopped.State, stopped.Proven = observe.Stopped, ""
	switch h.Resolution {
	case Receive:
		after := hostByName(e.After, h.To)
		after.Nodes = append(after.Nodes, stopped)
	case Reclaim:
		after := hostByName(e.After, h.From)
		after.Nodes = append(after.Nodes, stopped)
	}
}

// hasNode reports whether a host has a given node, or another live node of that name.
func hasNode(h *observe.Host, g *observe.OutgoingMove) bool {
	return slices.ContainsFunc(h.Nodes, func(n observe.Node) bool {
		return n.ID == g.ID || n.Name == g.Name &&
			!n.Staged && !g.Staged
	})
}

// resolveArrival decides what happens to the received data of a node that no host has given.
func (e *Resolutions) resolveArrival(at int, a *observe.IncomingMove) {
	host := &e.hosts[at]
	if _, ok := host.NodeByID(a.ID); ok {
		return // the node was made from it, and the next sweep removes it
	}
	for _, h := range e.hosts {
		given := func(g observe.OutgoingMove) bool { return g.ID == a.ID && g.To == host.Name }
		if slices.ContainsFunc(h.OutgoingMoves, given) {
			return // resolveOutgoing has handled it
		}
	}
	if why := e.keepReason(a); why != "" {
		e.Blocked = append(e.Blocked, Blocked{a.Name, why})
		e.After[at].IncomingMoves = append(e.After[at].IncomingMoves, *a)
		return
	}
	e.All = append(e.All, Handover{Resolution: Discard, Node: a.Name, ID: a.ID, From: a.From, To: host.Name, Drops: true})
}

// keepReason returns why the received data of a node that no host has given must be kept, or "" if it
// can be removed.
func (e *Resolutions) keepReason(a *observe.IncomingMove) string {
	from := hostByName(e.hosts, a.From)
	unknown := from != nil && from.Unknown
	for i := range e.hosts {
		if _, ok := e.hosts[i].NodeByID(a.ID); ok && !unknown {
			return ""
		}
		unknown = unknown || e.hosts[i].Unknown
	}
	switch {
	case unknown:
		return fmt.Sprintf("its move from host %s was interrupted, and the state of a host is unknown", a.From)
	case a.Whole:
		return fmt.Sprintf("all of it was received from host %s, which has no record of handing it over; orrery down %s removes the copy",
			a.From, a.Name)
	}
	return ""
}
