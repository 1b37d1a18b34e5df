package kvm

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

// changeRunning moves the links that are not where they shall be, all or none. What a guest has been shown of processors and memory stays.
func (e *Engine) changeRunning(ctx context.Context, is *spec.Node) error {
	was, err := e.Record(engine.RefOf(is))
	if err != nil {
		return err
	}
	if spec.Digest(was.Limits) != spec.Digest(is.Limits) || spec.Digest(was.VM.Fixed()) != spec.Digest(is.VM.Fixed()) {
		return problem.New(problem.Surprise, "node %s runs: the processors and the memory of its machine cannot be changed", is.Name).At(e.Dir(engine.RefOf(is)).Path()).Try("plan again")
	}
	if err := e.replug(ctx, was, is.VM); err != nil {
		return err
	}
	if err := e.rewire(ctx, was, is); err != nil {
		return err
	}
	return vm.MoveLinks(ctx, is, e.Runner(engine.RefOf(is)))
}
