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
	Receive End = iota // the other host makes the node of what has come
	Leave              // it has: what the first one has kept goes
	Reclaim            // the first one has the node again
	Drop               // what has come goes; nobody has given the node
)

// A Handover is a move that comes to its end.
type Handover struct {
	End
	Node     string
	ID       int
	Given    *observe.Given // nil: nobody has given it
	From, To string         // hosts
	Drops    bool           // what has come of it goes first
}

// A Stuck node has to wait: nobody can know whose it is.
type Stuck struct{ Node, Why string }

// Ends are those of all moves of nodes that are concerned.
type Ends struct {
	All   []Handover
	Stuck []Stuck
	After []observe.Host    // the hosts as they are then
	Homes map[string]string // hosts of nodes before, by their names

	hosts []observe.Host
}

// Settle decides what becomes of moves that were cut short, of nodes that are concerned. Fits tells
// whether a host can make a node of what has come.
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

// given decides whose a node is that was given.
func (e *Ends) given(from *observe.Host, g *observe.Given, fits func(to *observe.Host, g *observe.Given) bool) {
	h := Handover{End: Reclaim, Node: g.Name, ID: g.ID, Given: g, From: from.Name, To: g.To}
	to := named(e.hosts, g.To)
	switch {
	case to == nil: // whoever takes a host out of the site says that nothing of it is there any more
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

// has reports whether a host has a node that was given: it, or what is live of that name.
func has(h *observe.Host, g *observe.Given) bool {
	return slices.ContainsFunc(h.Nodes, func(n observe.Node) bool {
		return n.ID == g.ID || n.Name == g.Name &&
			!n.Staged && !g.Staged
	})
}

// arrival decides what becomes of what has come of a node that nobody has given.
func (e *Ends) arrival(at int, a *observe.Arrival) {
	host := &e.hosts[at]
	if _, ok := host.Has(a.ID); ok {
		return // it has become that, and is removed by the next who sweeps
	}
	for _, h := range e.hosts {
		if slices.ContainsFunc(h.Given, func(g observe.Given) bool { return g.ID == a.ID && g.To == host.Name }) {
			return // that has been settled
		}
	}
	if why := e.stays(a); why != "" {
		e.Stuck = append(e.Stuck, Stuck{a.Name, why})
		e.After[at].Arrivals = append(e.After[at].Arrivals, *a)
		return
	}
	e.All = append(e.All, Handover{End: Drop, Node: a.Name, ID: a.ID, From: a.From, To: host.Name, Drops: true})
}

// stays says why what has come of a node that nobody has given must not go; "": it may.
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
