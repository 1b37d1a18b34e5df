package fake

import (
	"context"

	"orrery/internal/engine"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// Replace recreates a stopped node with other layers and keeps the former node. It drops a node
// that was kept before, so that Restore returns to the state before the last Replace.
func (e *Engine) Replace(ctx context.Context, n *spec.Node) error {
	if err := e.stands("Replace", n); err != nil {
		return err
	}
	what := e.begin(ctx, "Replace", n.Name)
	if what.err != nil {
		return what.err
	}
	if !e.Can.Keep {
		return problem.New(problem.Unable, "node %s: the engine cannot keep a replaced node", n.Name)
	}
	ref := engine.RefOf(n)
	e.mu.Lock()
	former, err := e.find(ref)
	if err == nil && former.state != observe.Stopped {
		err = problem.New(problem.Surprise, "node %s is %s, and only a stopped node can be replaced", n.Name, former.state)
	}
	if err != nil {
		e.mu.Unlock()
		return err
	}
	former.former = nil
	made := newNode(n)
	made.former = former
	e.nodes[ref] = made
	e.mu.Unlock()
	if err := what.halfway(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.volumes.make(n)
	made.state = observe.Stopped
	return nil
}

// Restore puts the former node, stopped, back in the place of a stopped or half made one.
func (e *Engine) Restore(ctx context.Context, ref engine.Ref) error {
	what := e.begin(ctx, "Restore", ref.Name)
	if what.err != nil {
		return what.err
	}
	halfway := what.halfway(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	n, err := e.find(ref)
	if err != nil {
		return err
	}
	if n.state != observe.Stopped && n.state != observe.Broken {
		return problem.New(problem.Surprise, "node %s is %s, and only a stopped node can be restored", ref.Name, n.state)
	}
	if n.former == nil {
		return problem.New(problem.Failed, "node %s: its former state was not kept", ref.Name)
	}
	if halfway != nil {
		n.state = observe.Broken
		return halfway
	}
	e.nodes[ref] = n.former
	return nil
}

// Settle removes the former node.
func (e *Engine) Settle(ctx context.Context, ref engine.Ref) error {
	return e.changeNode(ctx, "Settle", ref, func(n *node) error {
		n.former = nil
		return nil
	})
}
