package xen

import (
	"context"

	"orrery/internal/engine"
	"orrery/internal/engine/vm"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// Change records what the node shall be and, if it runs, moves its links.
func (e *Engine) Change(ctx context.Context, n *spec.Node) error {
	return e.Nodes.Change(n, func() error { return e.changeRunning(ctx, n) })
}

// changeRunning moves the links that are not where they shall be, all or none. What Xen has been
// told of processors, memory and disks stays.
func (e *Engine) changeRunning(ctx context.Context, is *spec.Node) error {
	ref := engine.RefOf(is)
	was, err := e.Record(ref)
	if err != nil {
		return err
	}
	if spec.Digest(was.Limits) != spec.Digest(is.Limits) || was.Xen != is.Xen ||
		spec.Digest(was.VM) != spec.Digest(is.VM) {
		return problem.New(problem.Surprise,
			"node %s runs: the type, the processors, the memory and the disks of its domain cannot be changed", is.Name).
			At(e.Dir(ref).Path()).Try("plan again")
	}
	return vm.MoveLinks(ctx, is, e.Runner(ref))
}
