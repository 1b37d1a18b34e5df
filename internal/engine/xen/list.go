package xen

import (
	"context"

	"orrery/internal/engine"
	"orrery/internal/network/ends"
	"orrery/internal/observe"
)

// List returns the nodes of a site. It starts no process and asks neither Xen nor a guest, so it
// costs no more than reading the nodes' files.
func (e *Engine) List(_ context.Context, site string) ([]observe.Node, error) {
	return e.Observe(site, e.observeNode)
}

// ReadState sets the state of a node that runs or is frozen.
func (e *Engine) ReadState(n *observe.Node) {
	m := e.machine(engine.RefOf(&n.Node))
	if !m.running() {
		return
	}
	n.State = observe.Running
	if m.frozen() {
		n.State = observe.Frozen
	}
}

// observeNode sets the state of a node and, if it runs, the actual bridges of its links.
func (e *Engine) observeNode(n *observe.Node) {
	if e.ReadState(n); !n.Runs() {
		return
	}
	for i := range n.NICs {
		n.NICs[i].Bridge = ends.BridgeOfNIC(n.NICs[i], n.KindOf(n.NICs[i]))
	}
}
