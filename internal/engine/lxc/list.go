package lxc

import (
	"context"

	"orrery/internal/engine"
	"orrery/internal/observe"
)

// List returns the nodes of a site. It starts no process, so it costs no more than reading the
// nodes' files.
func (e *Engine) List(_ context.Context, site string) ([]observe.Node, error) {
	return e.Observe(site, e.observeNode)
}

// ReadState sets the state of a node that runs or is frozen.
func (e *Engine) ReadState(n *observe.Node) {
	c := e.container(engine.RefOf(&n.Node))
	if !c.running() {
		return
	}
	n.State = observe.Running
	if c.group().Frozen() {
		n.State = observe.Frozen
	}
}

// observeNode sets the state of a node and, if it runs, the actual state of its links and limits.
func (e *Engine) observeNode(n *observe.Node) {
	if e.ReadState(n); !n.Runs() {
		return
	}
	c := e.container(engine.RefOf(&n.Node))
	c.observeLinks(n)
	if limits, ok := c.group().InForce(n.Limits); !ok {
		n.Limits = limits // another process has changed the limits
	}
	if len(n.Devices) > 0 {
		n.Devices = c.devicesInForce(n.Devices)
	}
}
