package kvm

import (
	"context"

	"orrery/internal/engine"
	"orrery/internal/engine/vm"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// Change records the desired spec of a node. If the node runs, Change also changes its disks and
// interfaces and moves its links.
func (e *Engine) Change(ctx context.Context, n *spec.Node) error {
	return e.Nodes.Change(n, func() error { return changeRunning(ctx, e.guests, n) })
}

// changeRunning changes disks and interfaces, and moves the links that are on the wrong bridge, all
// or none. The processors and memory of a running machine are fixed.
func changeRunning(ctx context.Context, g *guests, node *spec.Node) error {
	old, err := g.nodes.Record(engine.RefOf(node))
	if err != nil {
		return err
	}
	if spec.Digest(old.Limits) != spec.Digest(node.Limits) || spec.Digest(old.VM.Fixed()) != spec.Digest(node.VM.Fixed()) {
		return problem.New(problem.Surprise, "node %s is running: its processors and memory cannot be changed",
			node.Name).At(g.nodes.Dir(engine.RefOf(node)).Path()).Try("plan again")
	}
	if err := replug(ctx, g, old, node.VM); err != nil {
		return err
	}
	if err := rewire(ctx, g, old, node); err != nil {
		return err
	}
	return vm.MoveLinks(ctx, node, g.Runner(engine.RefOf(node)))
}
