package nodedir

import (
	"context"
	"os"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// Replace recreates a stopped node and keeps the former one beside it.
func (n *Nodes) Replace(_ context.Context, s *spec.Node) error {
	ref := engine.RefOf(s)
	d := n.Dir(ref)
	old, err := n.Record(ref)
	if err != nil {
		return err
	}
	if err := n.checkReplaceable(ref); err != nil {
		return err
	}
	fresh := newNode{d.sibling("new"), &Record{Node: *s, Slot: old.Slot}, n}
	if err := fresh.make(); err != nil {
		return err
	}
	former := d.sibling("former")
	if err := tree.RemoveAll(former.Path()); err != nil {
		return err
	}
	if err := host.SwapPaths(fresh.Path(), d.Path()); err != nil {
		return err
	}
	return os.Rename(fresh.Path(), former.Path())
}

// Restore puts the former node back.
func (n *Nodes) Restore(_ context.Context, ref engine.Ref) error {
	if err := n.checkReplaceable(ref); err != nil {
		return err
	}
	d := n.Dir(ref)
	former := d.sibling("former")
	if !exists(former.Path()) {
		return problem.New(problem.Failed, "node %s: its former state was not kept", ref.Name).At(d.Path())
	}
	if err := host.SwapPaths(former.Path(), d.Path()); err != nil {
		return err
	}
	return tree.RemoveAll(former.Path())
}

// Settle removes the former node.
func (n *Nodes) Settle(_ context.Context, ref engine.Ref) error {
	return tree.RemoveAll(n.Dir(ref).sibling("former").Path())
}

func (n *Nodes) checkReplaceable(ref engine.Ref) error {
	if n.Running(ref) {
		return problem.New(problem.Surprise, "node %s is running and cannot be replaced", ref.Name).At(n.Dir(ref).Path()).
			Try("plan again")
	}
	return nil
}

// Fill replaces the private layer with which a node was made. Between the two renames the node has
// no private layer. Then layer still exists at its old path, which shows that Fill was interrupted.
func (n *Nodes) Fill(ref engine.Ref, layer string) error {
	private := n.Private(ref)
	made := private + "-made"
	if _, err := os.Lstat(layer); err != nil {
		return err
	}
	if err := tree.RemoveAll(made); err != nil {
		return err
	}
	if err := os.Rename(private, made); err != nil {
		return err
	}
	if err := os.Rename(layer, private); err != nil {
		return err
	}
	return tree.RemoveAll(made)
}
