package lxc

import (
	"context"

	"orrery/internal/engine"
	"orrery/internal/host/cgroup"
	"orrery/internal/problem"
)

// Freeze freezes all processes of a node.
func (e *Engine) Freeze(ctx context.Context, ref engine.Ref) error {
	c := e.container(ref)
	if !c.running() {
		return engine.NotRunning(ref)
	}
	if err := c.freezer().Freeze(ctx); err != nil {
		return problem.New(problem.Failed, "node %s could not be frozen", ref.Name).At(c.Path()).Because(err)
	}
	return nil
}

// Thaw lets the processes of a frozen node continue.
func (e *Engine) Thaw(ctx context.Context, ref engine.Ref) error {
	c := e.container(ref)
	if err := c.thaw(); err != nil {
		return problem.New(problem.Failed, "node %s is still frozen", ref.Name).At(c.Path()).Because(err)
	}
	return c.group().WaitFrozen(ctx, false)
}

// freezingFile returns the path of a file that exists from before Freeze freezes the node until after
// it is thawed.
func (c container) freezingFile() string { return c.File("freezing") }

func (c container) freezer() cgroup.Freezer {
	return cgroup.Freezer{Group: c.group(), Mark: c.freezingFile()}
}

// thaw thaws a frozen node, even if another program has frozen it.
func (c container) thaw() error { return c.freezer().Thaw() }
