package handover

import (
	"fmt"
	"slices"

	"orrery/internal/observe"
)

// An End is how a move ends.
type End int

// The ends of moves.
const (
	Receive End = iota // the other host makes the node from the received data
	Leave              // the other host has made the node: the first one removes what it kept
	Reclaim            // the first host owns the node again
	Drop               // the received data is removed, since no host has given the node
)

// A Handover is how an interrupted move is finished.
type Handover struct {
	End
	Node     string
	ID       int
	Given    *observe.Given // nil if no host has given the node
	From, To string         // hosts
	Drops    bool           // the received data is removed first
}

// A Stuck node must wait, since its owner cannot be determined.
type Stuck struct{ Node, Why string }

// Ends are how all interrupted moves of the selected nodes are finished.
type Ends struct {
	All   []Handover
	Stuck []Stuck
	After []observe.Host    // the hosts afterwards
	Homes map[string]string // node -> its host before

	hosts []observe.Host
}

// Settle decides how interrupted moves of the selected nodes are finished. fits reports whether a
// host can make a node from the received data.
func Settle(hosts []observe.Host, concerns func(node string) bool,
	fits func(to *observe.Host, g *observe.Given) bool) *Ends {
	e := &Ends{After: hosts, hosts: hosts}
	if !slices.ContainsFunc(hosts, func(h observe.Host) bool { return len(h.Given)+len(h.Arrivals) > 0 }) {
		return e
	}
	e.After = slices.Clone(hosts)
	for i := range e.After {
		h := &e.After[i]
		h.Nodes, h.Given, h.Arrivals = slices.Clone(h.Nodes), nil, nil
	}
	for i := range hosts {
		for j := range hosts[i].Given {
			if g := &hosts[i].Given[j]; concerns(g.Name) {
				e.given(&hosts[i], g, fits)
			} else {
				e.After[i].Given = append(e.After[i].Given, *g)
			}
		}
	}
	for i := range hosts {
		for j := range hosts[i].Arrivals {
			if a := &hosts[i].Arrivals[j]; concerns(a.Name) {
				e.arrival(i, a)
			} else {
				e.After[i].Arrivals = append(e.After[i].Arrivals, *a)
			}
		}
	}
	return e
}

func named(hosts []observe.Host, name string) *observe.Host {
	if i := slices.IndexFunc(hosts, func(h observe.Host) bool { return h.Name == name }); i >= 0 {
		return &hosts[i]
	}
	return nil
}

// given decides which host owns a node that was given.
func (e *Ends) given(from *observe.Host, g *observe.Given, fits func(to *observe.Host, g *observe.Given) bool) {
	h := Handover{End: Reclaim, Node: g.Name, ID: g.ID, Given: g, From: from.Name, To: g.To}
	to := named(e.hosts, g.To)
	switch {
	case to == nil: // removing a host from the site declares that nothing is left on it
		h.To = ""
	case to.Unknown:
		after := named(e.After, from.Name)
		after.Given = append(after.Given, *g)
		e.Stuck = append(e.Stuck, Stuck{g.Name, fmt.Sprintf("host %s has given it to host %s, of which nothing is known",
			from.Name, g.To)})
		return
	default:
		a, came := to.Arrival(g.ID)
		if has(to, g) {
			h.End = Leave
		} else if h.Drops = came; came && a.Whole && a.Sum == g.Sum && fits(to, g) {
			h.End, h.Drops = Receive, false
		}
	}
	e.All = append(e.All, h)
	stopped := g.Node
	stopped.State, stopped.Proven = observe.Stopped, ""
	switch h.End {
	case Receive:
		after := named(e.After, h.To)
		after.Nodes = append(after.Nodes, stopped)
	case Reclaim:
		after := named(e.After, h.From)
		after.Nodes = append(after.Nodes, stopped)
	}
}

// has reports whether a host has a given node, or another live node of that name.
func has(h *observe.Host, g *observe.Given) bool {
	return slices.ContainsFunc(h.Nodes, func(n observe.Node) bool {
		return n.ID == g.ID || n.Name == g.Name &&
			!n.Staged && !g.Staged
	})
}

// arrival decides what happens to the received data of a node that no host has given.
func (e *Ends) arrival(at int, a *observe.Arrival) {
	host := &e.hosts[at]
	if _, ok := host.Has(a.ID); ok {
		return // the node was made from it, and the next sweep removes it
	}
	for _, h := range e.hosts {
		if slices.ContainsFunc(h.Given, func(g observe.Given) bool { return g.ID == a.ID && g.To == host.Name }) {
			return // given has handled it
		}
	}
	if why := e.stays(a); why != "" {
		e.Stuck = append(e.Stuck, Stuck{a.Name, why})
		e.After[at].Arrivals = append(e.After[at].Arrivals, *a)
		return
	}
	e.All = append(e.All, Handover{End: Drop, Node: a.Name, ID: a.ID, From: a.From, To: host.Name, Drops: true})
}

// stays returns why the received data of a node that no host has given must be kept, or "" if it
// can be removed.
func (e *Ends) stays(a *observe.Arrival) string {
	from := named(e.hosts, a.From)
	unknown := from != nil && from.Unknown
	for i := range e.hosts {
		if _, ok := e.hosts[i].Has(a.ID); ok && !unknown {
			return ""
		}
		unknown = unknown || e.hosts[i].Unknown
	}
	switch {
	case unknown:
		return fmt.Sprintf("it was on its way from host %s, and of a host nothing is known", a.From)
	case a.Whole:
		return fmt.Sprintf("all of it has come from host %s, which does not know that it has given it; orrery down %s removes that",
			a.From, a.Name)
	}
	return ""
}
