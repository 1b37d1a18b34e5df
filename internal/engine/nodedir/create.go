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

// Create makes a stopped node, as engine.Engine specifies.
func (n *Nodes) Create(_ context.Context, s *spec.Node) error {
	d := n.Dir(engine.RefOf(s))
	if exists(d.Path()) {
		return problem.New(problem.Surprise, "node %s (id %d) already exists", s.Name, s.ID).At(d.Path()).Try("plan again")
	}
	slot, err := slotsOf(n).allocate(s.Site, s.ID)
	if err != nil {
		return err
	}
	fresh := newNode{d.sibling("new"), &Record{Node: *s, Slot: slot}, n}
	if err := fresh.make(); err != nil {
		return err
	}
	return os.Rename(fresh.Path(), d.Path())
}

// A newNode is the directory of a node that is being made, beside its final place.
type newNode struct {
	Dir
	r  *Record
	of *Nodes
}

func (m newNode) make() error {
	m.r.Config = spec.Config{} // no configuration has been applied
	if err := tree.RemoveAll(m.Path()); err != nil {
		return err
	}
	for _, dir := range []string{"rootfs", "binds", "private/upper", "private/work"} {
		if err := os.MkdirAll(m.File(dir), 0o755); err != nil {
			return err
		}
	}
	// Set-user-ID root programs of the node are also such programs on the host, so users of the
	// host must not reach them.
	if err := os.Chmod(m.File("private"), 0o700); err != nil {
		return err
	}
	if err := m.writeOwnFiles(); err != nil {
		return err
	}
	if err := os.WriteFile(m.File(engineFile), []byte(m.r.Engine), 0o600); err != nil {
		return err
	}
	if err := m.Write(m.r); err != nil {
		return err
	}
	return m.restrictAccess(m.r)
}

// writeOwnFiles writes the node's own files before its first start.
func (m newNode) writeOwnFiles() error {
	if m.r.Imported() {
		return m.createDisk()
	}
	private, err := tree.Open(m.Private())
	if err != nil {
		return err
	}
	defer private.Close()
	root := stoppedRoot{root: private, first: os.Geteuid()}
	if err := root.writeIdentity(m.of.Dirs, &m.r.Node); err != nil { // on disk, root of the node is root of the host
		return fmt.Errorf("private layer of node %s: %w", m.r.Name, err)
	}
	return nil
}

// restrictAccess closes the directory of a node to all users of the host but root. If the node's root has
// another id, its group may pass through, because LXC mounts what is inside from the node's user
// namespace.
func (d Dir) restrictAccess(r *Record) error {
	mode, group := os.FileMode(0o700), os.Getegid()
	if to := r.IDs(); to.Size > 0 {
		mode, group = 0o710, to.First
	}
	if err := os.Chown(d.Path(), -1, group); err != nil {
		return err
	}
	return os.Chmod(d.Path(), mode)
}

// Change updates everything but the layers and the applied configuration of a node to s. If the
// node runs, Change calls running, with which the engine updates the running node.
func (n *Nodes) Change(s *spec.Node, running func() error) error {
	ref := engine.RefOf(s)
	d := n.Dir(ref)
	r, err := n.Record(ref)
	if err != nil {
		return err
	}
	old := r.Node
	r.Node = *s
	r.Base, r.Kernel, r.Layer, r.Below, r.Parts, r.Config = old.Base, old.Kernel, old.Layer, old.Below, old.Parts,
		old.Config
	runs := n.Running(ref)
	switch {
	case runs && (reshaped(&old, s) || rewired(&old, s) && !n.PlugsNIC):
		return problem.New(problem.Surprise, "node %s runs: its interfaces, mounts and privileges cannot be changed",
			s.Name).At(d.Path()).Try("plan again")
	case runs:
		err = running()
	// A node with a foreign disk is configured when it boots.
	case (reshaped(&old, s) || rewired(&old, s)) && !s.Imported():
		// Write the node's own files again as the node sees its root, because the node may have
		// changed them.
		err = within(d, n.Store, r, func(root stoppedRoot) error { return root.writeIdentity(n.Dirs, s) })
		if err != nil {
			err = problem.New(problem.Failed, "node %s: its host name, machine-id and keys cannot be written", r.Name).
				At(d.Path()).Because(err).
				Try("repair that in the node, or recreate the node by orrery down and orrery up")
		}
	}
	if err != nil {
		return err
	}
	r.Doubt = nil
	if err := d.Write(r); err != nil || old.Privileged == s.Privileged {
		return err
	}
	return d.restrictAccess(r)
}

// reshaped reports whether two specifications differ in what only a stopped node can change.
func reshaped(old, next *spec.Node) bool {
	return old.Privileged != next.Privileged || !slices.Equal(old.Syscalls, next.Syscalls) ||
		!slices.Equal(old.Devices, next.Devices) ||
		old.MachineID != next.MachineID || !slices.Equal(old.Mounts, next.Mounts)
}

// rewired reports whether two specifications differ in interfaces, apart from the bridges of these.
func rewired(old, next *spec.Node) bool {
	return !slices.Equal(spec.WithoutBridges(old), spec.WithoutBridges(next))
}
