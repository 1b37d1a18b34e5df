package lxc

import (
	"context"

	"orrery/internal/engine"
	"orrery/internal/observe"
)

// List gives the nodes of a site. It starts no process, so that a look at many nodes costs no more than their files.
func (e *Engine) List(_ context.Context, site string) ([]observe.Node, error) {
	return e.Observe(site, e.look)
}

// Glance returns of them what does not take long to find out.
func (e *Engine) Glance(_ context.Context, site string) ([]observe.Node, error) {
	return e.Nodes.Glance(site, e.glance)
}

// glance sees whether a node runs.
func (e *Engine) glance(n *observe.Node) {
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
	if e.glance(n); !n.Runs() {
		return
	}
	c := e.container(engine.RefOf(&n.Node))
	c.observeLinks(n)
	if has, ok := c.group().Holds(n.Limits); !ok {
		n.Limits = has // somebody changed them behind our back
	}
}
