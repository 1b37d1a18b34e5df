package kvm

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/network/ends"
	"orrery/internal/observe"
)

// List gives the nodes of a site. It starts no process and asks no guest, so that a look at many nodes costs no more than their files.
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
	m := e.machine(engine.RefOf(&n.Node))
	switch {
	case !f.Whole:
		n.State = observe.Broken
	case m.running():
		n.State = observe.Running
		if m.group().Frozen() {
			n.State = observe.Frozen
		}
		for i := range n.NICs {
			n.NICs[i].Bridge = ends.Whereabouts(n.NICs[i], n.KindOf(n.NICs[i]))
		}
		if has, ok := m.group().Holds(bounds(&n.Node)); !ok {
			n.Limits.Cpus, n.Limits.Pin = has.Cpus, has.Pin // somebody changed them behind our back
		}
	}
	return n
}
