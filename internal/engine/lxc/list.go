package lxc

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/observe"
)

// List gives the nodes of a site. It starts no process, so that a look at many nodes costs no more than their files.
func (e *Engine) List(_ context.Context, site string) ([]observe.Node, error) {
	found, err := e.Found(site)
	if err != nil {
		return nil, err
	}
	var nodes []observe.Node
	for _, f := range found {
		nodes = append(nodes, e.observe(f))
	}
	slices.SortFunc(nodes, func(a, b observe.Node) int {
		return cmp.Or(strings.Compare(a.Site, b.Site), strings.Compare(a.Name, b.Name))
	})
	return nodes, nil
}

func (e *Engine) observe(f nodedir.Found) observe.Node {
	n := observe.Node{Node: f.Record.Node, State: observe.Stopped, Configured: f.Record.Configured, Proven: f.Record.Proven, ProvenAt: f.Record.ProvenAt, Active: f.Record.Active}
	c := e.container(engine.RefOf(&n.Node))
	switch {
	case !f.Whole:
		n.State = observe.Broken
	case c.running():
		n.State = observe.Running
		if c.group().Frozen() {
			n.State = observe.Frozen
		}
		c.observeLinks(&n)
		if has, ok := c.group().Holds(n.Limits); !ok {
			n.Limits = has // somebody changed them behind our back
		}
	}
	return n
}
