package lxc

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"orrery/internal/engine"
	"orrery/internal/problem"
)

// Freeze lets all processes of a node stand still. A file tells that it was us, so that Sweep lets go on what a run that
// was killed has frozen, and leaves alone what others have.
func (e *Engine) Freeze(ctx context.Context, ref engine.Ref) error {
	c := e.container(ref)
	if !c.running() {
		return notRunning(ref)
	}
	if c.group().Frozen() {
		return c.group().AwaitFrost(ctx, true)
	}
	if err := os.WriteFile(c.freezing(), nil, 0o600); err != nil {
		return err
	}
	err := c.group().SetFrozen(true)
	if err == nil {
		err = c.group().AwaitFrost(ctx, true)
	}
	if err != nil {
		return errors.Join(problem.New(problem.Failed, "node %s does not stand still", ref.Name).At(c.Path()).Because(err), c.thaw())
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

// thaw lets a frozen node go on, whoever froze it.
func (c container) thaw() error {
	if c.group().Frozen() {
		if err := c.group().SetFrozen(false); err != nil {
			return err
		}
	}
	if err := os.Remove(c.freezing()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
