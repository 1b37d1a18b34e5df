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
	return e.Nodes.Change(n, func() error { return changeRunning(ctx, e.guests, n) })
}

// changeRunning moves the links that are not where they shall be, all or none. What a guest has
// been shown of processors and memory stays.
func changeRunning(ctx context.Context, g *guests, is *spec.Node) error {
	was, err := g.nodes.Record(engine.RefOf(is))
	if err != nil {
		return err
	}
	if spec.Digest(was.Limits) != spec.Digest(is.Limits) || spec.Digest(was.VM.Fixed()) != spec.Digest(is.VM.Fixed()) {
		return problem.New(problem.Surprise, "node %s runs: the processors and the memory of its machine cannot be changed",
			is.Name).At(g.nodes.Dir(engine.RefOf(is)).Path()).Try("plan again")
	}
	if err := replug(ctx, g, was, is.VM); err != nil {
		return err
	}
	if err := rewire(ctx, g, was, is); err != nil {
		return err
	}
	return vm.MoveLinks(ctx, is, g.Runner(engine.RefOf(is)))
}
