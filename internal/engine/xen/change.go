package xen

import (
	"context"

	"orrery/internal/engine"
	"orrery/internal/engine/vm"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// Change records the desired spec of a node. If the node runs, Change also moves its links.
func (e *Engine) Change(ctx context.Context, n *spec.Node) error {
	return e.Nodes.Change(n, func() error { return e.changeRunning(ctx, n) })
}

// changeRunning moves the links that are on the wrong bridge, all or none. The processors, memory
// and disks of a running domain are fixed.
func (e *Engine) changeRunning(ctx context.Context, node *spec.Node) error {
	ref := engine.RefOf(node)
	old, err := e.Record(ref)
	if err != nil {
		return err
	}
	if spec.Digest(old.Limits) != spec.Digest(node.Limits) || old.Xen != node.Xen ||
		spec.Digest(old.VM) != spec.Digest(node.VM) {
		return problem.New(problem.Surprise,
			"node %s is running: the type, processors, memory and disks of its domain cannot be changed", node.Name).
			At(e.Dir(ref).Path()).Try("plan again")
	}
	return vm.MoveLinks(ctx, node, e.Runner(ref))
}
