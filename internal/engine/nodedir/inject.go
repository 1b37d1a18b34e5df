package nodedir

import (
	"context"
	"fmt"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/site/distro"
	"orrery/internal/tree"
)

// Inject writes files into the private layer of a stopped node. Links in paths are followed only
// inside the node's root.
func (n *Nodes) Inject(_ context.Context, ref engine.Ref, files ...host.File) error {
	return n.withinStopped(ref, func(root stoppedRoot) error {
		for _, f := range files {
			if err := root.put(f); err != nil {
				return fmt.Errorf("file %s of node %s: %w", f.Path, ref.Name, err)
			}
		}
		return nil
	})
}

// Disable keeps units from starting when a stopped node boots.
func (n *Nodes) Disable(_ context.Context, ref engine.Ref, units ...string) error {
	return n.withinStopped(ref, func(root stoppedRoot) error {
		for _, unit := range units {
			if err := root.services.Disable(root.root, unit); err != nil {
				return problem.New(problem.Failed, "node %s: unit %s cannot be disabled", ref.Name, unit).At(n.Dir(ref).Path()).
					Because(err).
					Try("repair /etc/systemd/system in the node; or remove the release with orrery release prune and stage it again")
			}
		}
		return nil
	})
}

// withinStopped calls work with the root of a node, if the node does not run.
func (n *Nodes) withinStopped(ref engine.Ref, work func(stoppedRoot) error) error {
	r, err := n.Record(ref)
	if err != nil {
		return err
	}
	if n.Running(ref) {
		return problem.New(problem.Surprise, "node %s is already running", ref.Name).At(n.Dir(ref).Path()).Try("plan again")
	}
	return within(n.Dir(ref), n.Store, r, work)
}

// within calls work with the root of a stopped node as the node would see it.
func within(d Dir, store *image.Store, r *Record, work func(stoppedRoot) error) error {
	if r.Imported() {
		return problem.New(problem.Unable, "node %s boots a disk, whose files the host does not open", r.Name).At(d.Path()).
			Try("start the node and do it from inside")
	}
	o := d.Overlay(store, r)
	return o.WithMounted(func() error {
		root, err := tree.Open(o.Target)
		if err != nil {
			return err
		}
		defer root.Close()
		return work(stoppedRoot{root, o.IDs.First, distro.OrDefault(r.Node.Distribution).Services})
	})
}

// stoppedRoot is the root of a stopped node, seen from the host. Whatever links the node has made, no
// file outside is reached.
type stoppedRoot struct {
	root     *tree.Root
	first    int // the id of the node's root on the host
	services *distro.Services
}

// put writes a file and sets its owner by the node's accounts. It creates missing directories,
// which belong to the node's root, as links do.
func (in stoppedRoot) put(f host.File) error {
	owner := f.Owner
	if f.Link != "" {
		owner = ""
	}
	uid, gid, err := image.LookupAccountIn([]*tree.Root{in.root}, owner)
	if err != nil {
		return err
	}
	return in.root.Put(tree.File{
		Path: f.Path, Content: f.Content, Link: f.Link, Uid: in.first + uid, Gid: in.first + gid, Mode: f.Mode,
	}, in.first, in.first)
}
