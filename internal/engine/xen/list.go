package xen

import (
	"context"

	"orrery/internal/engine"
	"orrery/internal/network/ends"
	"orrery/internal/observe"
)

// List returns the nodes of a site. It starts no process and asks neither Xen nor a guest, so that
// a look at many nodes costs no more than their files.
func (e *Engine) List(_ context.Context, site string) ([]observe.Node, error) {
	return e.Observe(site, e.look)
}

// Glance sees whether a node runs.
func (e *Engine) Glance(n *observe.Node) {
	m := e.machine(engine.RefOf(&n.Node))
	if !m.running() {
		return
	}
	n.State = observe.Running
	if m.frozen() {
		n.State = observe.Frozen
	}
}

// look sees whether a node runs, and if so, how its links are.
func (e *Engine) look(n *observe.Node) {
	if e.Glance(n); !n.Runs() {
		return
	}
	for i := range n.NICs {
		n.NICs[i].Bridge = ends.Whereabouts(n.NICs[i], n.KindOf(n.NICs[i]))
	}
}
