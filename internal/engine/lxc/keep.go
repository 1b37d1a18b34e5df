package lxc

import (
	"context"
	"os"
	"path/filepath"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// former is where the node is kept that was replaced.
func (c container) former() string {
	return filepath.Join(filepath.Dir(c.Path()), "."+filepath.Base(c.Path())+"-former")
}

// Replace makes a stopped node anew and keeps the former one aside.
func (e *Engine) Replace(_ context.Context, n *spec.Node) error {
	c := e.container(engine.RefOf(n))
	was, err := c.Read()
	if err != nil {
		return missing(c, err)
	}
	if c.running() {
		return problem.New(problem.Surprise, "node %s runs and cannot be replaced", n.Name).At(c.Path()).Try("plan again")
	}
	fresh, err := e.prepare(c, &nodedir.Record{Node: *n, Slot: was.Slot})
	if err != nil {
		return err
	}
	if err := tree.RemoveAll(c.former()); err != nil {
		return err
	}
	if err := host.Exchange(fresh, c.Path()); err != nil {
		return err
	}
	return os.Rename(fresh, c.former())
}

// Restore puts the former node back.
func (e *Engine) Restore(_ context.Context, ref engine.Ref) error {
	c := e.container(ref)
	if c.running() {
		return problem.New(problem.Surprise, "node %s runs and cannot be replaced", ref.Name).At(c.Path()).Try("plan again")
	}
	if _, err := os.Stat(c.former()); err != nil {
		return problem.New(problem.Failed, "node %s: nothing was kept of what it was before", ref.Name).At(c.Path())
	}
	if err := host.Exchange(c.former(), c.Path()); err != nil {
		return err
	}
	return tree.RemoveAll(c.former())
}

// Settle removes the former node.
func (e *Engine) Settle(_ context.Context, ref engine.Ref) error {
	return tree.RemoveAll(e.container(ref).former())
}
