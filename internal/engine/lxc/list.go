package lxc

import (
	"context"

	"orrery/internal/engine"
	"orrery/internal/observe"
)

// List returns the nodes of a site. It starts no process, so that a look at many nodes costs no
// more than their files.
func (e *Engine) List(_ context.Context, site string) ([]observe.Node, error) {
	return e.Observe(site, e.look)
}

// Glance sees whether a node runs.
func (e *Engine) Glance(n *observe.Node) {
	c := e.container(engine.RefOf(&n.Node))
	if !c.running() {
		return
	}
	n.State = observe.Running
	if c.group().Frozen() {
		n.State = observe.Frozen
	}
}

// look sees whether a node runs, and if so, how its links and limits are.
func (e *Engine) look(n *observe.Node) {
	if e.Glance(n); !n.Runs() {
		return
	}
	c := e.container(engine.RefOf(&n.Node))
	c.observeLinks(n)
	if limits, ok := c.group().Holds(n.Limits); !ok {
		n.Limits = limits // somebody changed them behind our back
	}
}
