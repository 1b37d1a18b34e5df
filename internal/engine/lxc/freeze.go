package lxc

import (
	"context"

	"orrery/internal/engine"
	"orrery/internal/host/cgroup"
	"orrery/internal/problem"
)

// Freeze lets all processes of a node stand still.
func (e *Engine) Freeze(ctx context.Context, ref engine.Ref) error {
	c := e.container(ref)
	if !c.running() {
		return engine.NotRunning(ref)
	}
	if err := c.frost().Freeze(ctx); err != nil {
		return problem.New(problem.Failed, "node %s does not stand still", ref.Name).At(c.Path()).Because(err)
	}
	return nil
}

// Thaw lets the processes of a node go on.
func (e *Engine) Thaw(ctx context.Context, ref engine.Ref) error {
	c := e.container(ref)
	if err := c.thaw(); err != nil {
		return problem.New(problem.Failed, "node %s stays frozen", ref.Name).At(c.Path()).Because(err)
	}
	return c.group().AwaitFrost(ctx, false)
}

// freezing is a file that is there from before the node is frozen by us until after it goes on.
func (c container) freezing() string { return c.File("freezing") }

func (c container) frost() cgroup.Frost { return cgroup.Frost{Group: c.group(), Mark: c.freezing()} }

// thaw lets a frozen node go on, whoever froze it.
func (c container) thaw() error { return c.frost().Thaw() }
