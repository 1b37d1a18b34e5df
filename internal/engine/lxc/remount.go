package lxc

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/image/rootfs"
	"orrery/internal/site/spec"
)

// Remount changes which volumes a running node sees. It asks the kernel for the current mounts
// instead of the record, so that it repairs what a killed run left.
func (e *Engine) Remount(ctx context.Context, n *spec.Node) error {
	c := e.container(engine.RefOf(n))
	r, err := e.Record(c.ref)
	if err != nil {
		return err
	}
	if !c.running() {
		return engine.NotRunning(c.ref)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	old := r.Mounts
	rest := slices.DeleteFunc(slices.Clone(old), func(m spec.Mount) bool { return slices.Contains(n.Mounts, m) })
	if err := c.WriteMounts(r, append(rest, n.Mounts...)); err != nil {
		return err
	}
	change, err := e.newRemounting(c, r)
	if err != nil {
		return err
	}
	before := change.standing
	if err := change.apply(e.Volumes(n, n.Mounts)); err != nil {
		back := change.apply(before)
		if back == nil {
			back = c.WriteMounts(r, old)
		}
		return errors.Join(err, back)
	}
	return c.WriteMounts(r, n.Mounts)
}

// remounting is a change of a running node's volumes.
type remounting struct {
	c        container
	ids      rootfs.IDs
	etc      nodedir.Mount
	known    []nodedir.Mount // volumes that the node sees or may see
	standing []nodedir.Mount // the known volumes that the node sees
	wanted   []nodedir.Mount
	origins  map[string]rootfs.MountSource // by source directory
}

// newRemounting finds out which of the recorded volumes a running node sees.
func (e *Engine) newRemounting(c container, r *nodedir.Record) (*remounting, error) {
	s := &remounting{c: c, ids: r.IDs(), origins: map[string]rootfs.MountSource{}}
	fixed, err := e.Mounts(&nodedir.Record{Node: spec.Node{Site: r.Site, ID: r.ID}})
	if err != nil {
		return nil, err
	}
	s.etc = fixed[0]
	for _, m := range r.Mounts { // one by one, because a path may be recorded twice
		s.known = append(s.known, e.Volumes(&r.Node, []spec.Mount{m})...)
	}
	for _, m := range append(slices.Clone(s.known), s.etc) {
		origins, err := rootfs.MountSourcesOf(m.Source)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a mount of a missing directory is recognised by its mount point
		}
		if err != nil {
			return nil, err
		}
		s.origins[m.Source] = origins[0]
	}
	return s, rootfs.InMountNamespace(c.init(), func(table func() ([]rootfs.MountInfo, error)) error {
		mounts, err := table()
		for _, m := range s.known {
			if s.isMounted(mounts, m, m.Path) && !slices.Contains(s.standing, m) {
				s.standing = append(s.standing, m)
			}
		}
		return err
	})
}

// apply makes the wanted volumes, and no other known ones, visible to the node.
func (s *remounting) apply(wanted []nodedir.Mount) error {
	s.wanted = wanted
	kept := slices.DeleteFunc(slices.Clone(wanted), func(m nodedir.Mount) bool { return !slices.Contains(s.standing, m) })
	// LXC reads this file if the node reboots at this moment.
	if err := writeFstab(s.c.fstab(), append([]nodedir.Mount{s.etc}, kept...)); err != nil {
		return err
	}
	for _, v := range s.views() {
		if err := s.unmountUnwanted(v); err != nil {
			return err
		}
	}
	if err := s.mountMissing(s.monitor(), s.node()); err != nil {
		return err
	}
	for _, m := range s.known {
		if !slices.Contains(wanted, m) {
			_ = os.Remove(m.Bind) // it is empty
		}
	}
	return writeFstab(s.c.fstab(), append([]nodedir.Mount{s.etc}, wanted...))
}

// isMounted reports whether a volume is mounted at a path.
func (s *remounting) isMounted(table []rootfs.MountInfo, m nodedir.Mount, at string) bool {
	return slices.ContainsFunc(table, func(t rootfs.MountInfo) bool { return t.At == at && s.showsVolume(m, t) })
}

// showsVolume reports whether a mount shows a volume. If the volume's directory was removed, the kernel
// marks the mount so.
func (s *remounting) showsVolume(m nodedir.Mount, t rootfs.MountInfo) bool {
	if origin, ok := s.origins[m.Source]; ok {
		return t.Source == origin
	}
	return (t.At == m.Path || t.At == m.Bind) && sourceRemoved(t)
}
