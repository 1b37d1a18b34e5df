package nodedir

import (
	"context"
	"fmt"
	"os"
	"slices"

	"orrery/internal/engine"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// Create makes a node.
func (n *Nodes) Create(_ context.Context, s *spec.Node) error {
	d := n.Dir(engine.RefOf(s))
	if exists(d.Path()) {
		return problem.New(problem.Surprise, "node %s (id %d) is there already", s.Name, s.ID).At(d.Path()).Try("plan again")
	}
	slot, err := n.takeSlot(s.Site, s.ID)
	if err != nil {
		return err
	}
	fresh, err := n.prepare(d, &Record{Node: *s, Slot: slot})
	if err != nil {
		return err
	}
	return os.Rename(fresh.Path(), d.Path())
}

// prepare makes the directory of a node beside the place where it will be.
func (n *Nodes) prepare(d Dir, r *Record) (fresh Dir, err error) {
	r.Config = spec.Config{} // nothing of it has been applied
	fresh = d.beside("new")
	if err := tree.RemoveAll(fresh.Path()); err != nil {
		return fresh, err
	}
	for _, dir := range []string{"rootfs", "binds", "private/upper", "private/work"} {
		if err := os.MkdirAll(fresh.File(dir), 0o755); err != nil {
			return fresh, err
		}
	}
	// What is set-user-ID root in the node is so here: no user of the host may get at it.
	if err := os.Chmod(fresh.File("private"), 0o700); err != nil {
		return fresh, err
	}
	if err := n.begin(fresh, &r.Node); err != nil {
		return fresh, err
	}
	if err := os.WriteFile(fresh.File(makerFile), []byte(r.Engine), 0o600); err != nil {
		return fresh, err
	}
	if err := fresh.Write(r); err != nil {
		return fresh, err
	}
	return fresh, fresh.enclose(r)
}

// begin makes what a node has of its own before it has run.
func (n *Nodes) begin(fresh Dir, s *spec.Node) error {
	if s.Imported() {
		return n.beginDisk(fresh, s)
	}
	private, err := tree.Open(fresh.Private())
	if err != nil {
		return err
	}
	defer private.Close()
	if err := n.personalise(stopped{root: private, first: os.Geteuid()}, s); err != nil { // on disk, the node's root is that of the host
		return fmt.Errorf("private layer of node %s: %w", s.Name, err)
	}
	return nil
}

// enclose closes the directory of a node to all users of the host but root and, if it is another, the root of the node, from whose
// namespace LXC mounts what is in there: that one may go through it.
func (d Dir) enclose(r *Record) error {
	mode, group := os.FileMode(0o700), os.Getegid()
	if to := r.IDs(); to.Size > 0 {
		mode, group = 0o710, to.First
	}
	if err := os.Chown(d.Path(), -1, group); err != nil {
		return err
	}
	return os.Chmod(d.Path(), mode)
}

// Change makes a node as specified in all but its layers and in how far it has come. What is to be done to one that runs is the engine's.
func (n *Nodes) Change(s *spec.Node, running func() error) error {
	ref := engine.RefOf(s)
	d := n.Dir(ref)
	r, err := n.Record(ref)
	if err != nil {
		return err
	}
	was := r.Node
	r.Node = *s
	r.Base, r.Kernel, r.Layer, r.Below, r.Parts, r.Config = was.Base, was.Kernel, was.Layer, was.Below, was.Parts, was.Config
	runs := n.Running(ref)
	switch {
	case runs && (reshaped(&was, s) || rewired(&was, s) && !n.PlugsNIC):
		return problem.New(problem.Surprise, "node %s runs: its interfaces, mounts and privileges cannot be changed", s.Name).At(d.Path()).Try("plan again")
	case runs:
		err = running()
	case (reshaped(&was, s) || rewired(&was, s)) && !s.Imported(): // who boots a disk is told as it boots
		err = n.personaliseAgain(r)
	}
	if err != nil {
		return err
	}
	r.Doubt = nil
	if err := d.Write(r); err != nil || was.Privileged == s.Privileged {
		return err
	}
	return d.enclose(r)
}

// personaliseAgain makes the root of a node that does not run this node's once more, as the node sees it: it has written there itself.
func (n *Nodes) personaliseAgain(r *Record) error {
	err := n.within(r, func(root stopped) error { return n.personalise(root, &r.Node) })
	if err != nil {
		return problem.New(problem.Failed, "node %s: its host name, machine-id and keys cannot be written", r.Name).
			At(n.Dir(engine.RefOf(&r.Node)).Path()).Because(err).
			Try("put that right in the node; or remove the node with orrery down and make it anew with orrery up")
	}
	return nil
}

// reshaped reports whether two specifications differ in what only a stopped node can change.
func reshaped(was, is *spec.Node) bool {
	return was.Privileged != is.Privileged || !slices.Equal(was.Syscalls, is.Syscalls) || was.MachineID != is.MachineID || !slices.Equal(was.Mounts, is.Mounts)
}

// rewired reports whether they differ in interfaces, but for the bridges on which these are.
func rewired(was, is *spec.Node) bool { return !slices.Equal(spec.Linked(was), spec.Linked(is)) }
