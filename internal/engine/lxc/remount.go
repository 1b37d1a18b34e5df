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

// Remount changes which volumes a running node sees. What it sees now is asked of the kernel, not
// of the record, so that a run that was killed is made good by the next.
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
	change, err := e.seen(c, r)
	if err != nil {
		return err
	}
	before := change.standing
	if err := change.to(e.Volumes(n, n.Mounts)); err != nil {
		back := change.to(before)
		if back == nil {
			back = c.WriteMounts(r, old)
		}
		return errors.Join(err, back)
	}
	return c.WriteMounts(r, n.Mounts)
}

// remounting is the volumes of a running node while they change.
type remounting struct {
	c        container
	ids      rootfs.IDs
	etc      nodedir.Mount
	known    []nodedir.Mount // that the node sees or may see
	standing []nodedir.Mount // of these, the ones that it sees
	wanted   []nodedir.Mount
	origins  map[string]rootfs.Origin // of their directories
}

// seen looks at which of the volumes on record a running node sees.
func (e *Engine) seen(c container, r *nodedir.Record) (*remounting, error) {
	s := &remounting{c: c, ids: r.IDs(), origins: map[string]rootfs.Origin{}}
	fixed, err := e.Mounts(&nodedir.Record{Node: spec.Node{Site: r.Site, ID: r.ID}})
	if err != nil {
		return nil, err
	}
	s.etc = fixed[0]
	for _, m := range r.Mounts { // one by one: a path may be on record twice
		s.known = append(s.known, e.Volumes(&r.Node, []spec.Mount{m})...)
	}
	for _, m := range append(slices.Clone(s.known), s.etc) {
		origins, err := rootfs.OriginsOf(m.Source)
		if errors.Is(err, fs.ErrNotExist) {
			continue // what a node sees of it is recognised by its place
		}
		if err != nil {
			return nil, err
		}
		s.origins[m.Source] = origins[0]
	}
	return s, rootfs.InSpace(c.init(), func(table func() ([]rootfs.Mounted, error)) error {
		mounts, err := table()
		for _, m := range s.known {
			if s.shows(mounts, m, m.Path) && !slices.Contains(s.standing, m) {
				s.standing = append(s.standing, m)
			}
		}
		return err
	})
}

// to lets the node see some of the known volumes and no others.
func (s *remounting) to(wanted []nodedir.Mount) error {
	s.wanted = wanted
	kept := slices.DeleteFunc(slices.Clone(wanted), func(m nodedir.Mount) bool { return !slices.Contains(s.standing, m) })
	// LXC reads it if the node reboots just now.
	if err := writeFstab(s.c.fstab(), append([]nodedir.Mount{s.etc}, kept...)); err != nil {
		return err
	}
	for _, v := range s.views() {
		if err := s.clear(v); err != nil {
			return err
		}
	}
	if err := s.supply(s.monitor(), s.node()); err != nil {
		return err
	}
	for _, m := range s.known {
		if !slices.Contains(wanted, m) {
			_ = os.Remove(m.Bind) // it is empty
		}
	}
	return writeFstab(s.c.fstab(), append([]nodedir.Mount{s.etc}, wanted...))
}

// shows reports whether a volume is mounted at a place.
func (s *remounting) shows(table []rootfs.Mounted, m nodedir.Mount, at string) bool {
	return slices.ContainsFunc(table, func(t rootfs.Mounted) bool { return t.At == at && s.isOf(m, t) })
}

// isOf reports whether something mounted shows a volume. The kernel calls a directory so that has been removed.
func (s *remounting) isOf(m nodedir.Mount, t rootfs.Mounted) bool {
	if origin, ok := s.origins[m.Source]; ok {
		return t.Origin == origin
	}
	return (t.At == m.Path || t.At == m.Bind) && removed(t)
}
