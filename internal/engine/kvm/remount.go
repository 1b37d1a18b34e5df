package kvm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/image"
	"orrery/internal/image/rootfs"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// Remount changes which volumes a running node sees. They are mounted in the root that virtiofsd
// shows the guest, which finds each as a file system of its own. It asks the kernel for the current
// mounts instead of the record, so that it repairs what a killed run left.
func (e *Engine) Remount(ctx context.Context, n *spec.Node) error {
	m := e.machine(engine.RefOf(n))
	r, err := e.Record(m.Ref)
	if err != nil {
		return err
	}
	if r.VM.Disk != "" {
		return stays(r, n)
	}
	s := &remounting{nodes: e.Nodes, m: m, agent: e.minder(m), ids: r.IDs(), sharer: m.sharer()}
	if s.sharer == 0 {
		return engine.NotRunning(m.Ref)
	}
	if m.still() {
		return problem.New(problem.Failed, "node %s stands still: its volumes cannot be changed", n.Name).At(n.Site).
			Try("orrery start %s", n.Name)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	old := r.Mounts
	rest := slices.DeleteFunc(slices.Clone(old), func(m spec.Mount) bool { return slices.Contains(n.Mounts, m) })
	if err := m.WriteMounts(r, append(rest, n.Mounts...)); err != nil {
		return err
	}
	before, err := s.standing(r)
	if err != nil {
		return err
	}
	if err := s.to(ctx, e.Volumes(n, n.Mounts)); err != nil {
		back := s.to(context.WithoutCancel(ctx), before)
		if back == nil {
			back = m.WriteMounts(r, old)
		}
		return errors.Join(err, back)
	}
	return m.WriteMounts(r, n.Mounts)
}

// stays returns a problem if the volumes of a running node with a root disk would change. Its guest
// mounted them above that disk when it booted.
func stays(r *nodedir.Record, n *spec.Node) error {
	if slices.Equal(r.Mounts, n.Mounts) {
		return nil
	}
	return problem.New(problem.Unable, "node %s keeps what it writes on a disk, and runs: its volumes cannot be changed",
		n.Name).At(n.Site).
		Try("orrery stop %s, and run the same command again", n.Name)
}

// remounting is a change of a running node's volumes.
type remounting struct {
	nodes  *nodedir.Nodes
	m      machine
	agent  func(ctx context.Context) (minder, error) // connects to the guest's agent
	ids    rootfs.IDs
	sharer int // process id of virtiofsd
}

// standing returns the recorded volumes that virtiofsd sees.
func (s *remounting) standing(r *nodedir.Record) (all []nodedir.Mount, err error) {
	table, err := s.table()
	if err != nil {
		return nil, err
	}
	for _, m := range r.Mounts { // one by one, because a path may be recorded twice
		for _, v := range s.nodes.Volumes(&r.Node, []spec.Mount{m}) {
			shown, err := shows(table, v)
			if err != nil {
				return nil, err
			}
			if shown && !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
	}
	return all, nil
}

// table returns the volumes that are mounted in the root of the node.
func (s *remounting) table() ([]rootfs.Mounted, error) {
	all, err := rootfs.MountsOf(strconv.Itoa(s.sharer))
	return slices.DeleteFunc(all, func(m rootfs.Mounted) bool {
		return m.At == "/" || m.At == etc || m.At == "/"+vm.Hold
	}), err
}

// etc is the directory in a node that shows the host's files for it.
const etc = "/etc/orrery"

// shows reports whether a volume is mounted at its path.
func shows(table []rootfs.Mounted, v nodedir.Mount) (bool, error) {
	origins, err := rootfs.OriginsOf(v.Source)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(table, func(m rootfs.Mounted) bool { return m.At == v.Path && m.Origin == origins[0] }), nil
}

// to makes the wanted volumes, and no others, visible to the node.
func (s *remounting) to(ctx context.Context, wanted []nodedir.Mount) error {
	table, err := s.table()
	if err != nil {
		return err
	}
	doomed, err := doomed(table, wanted)
	if err != nil {
		return err
	}
	if err := s.letGo(ctx, doomed); err != nil {
		return err
	}
	return s.supply(ctx, slices.DeleteFunc(slices.Clone(wanted), func(v nodedir.Mount) bool {
		return !slices.Contains(doomed, v.Path) &&
			slices.ContainsFunc(table, func(m rootfs.Mounted) bool { return m.At == v.Path })
	}))
}

// doomed returns the mount points that must be unmounted, innermost first: mounts that are not
// wanted there, and what stands inside of what changes, which comes back.
func doomed(table []rootfs.Mounted, wanted []nodedir.Mount) (all []string, err error) {
	var changed, kept []string
	for _, v := range wanted {
		shown, err := shows(table, v)
		if err != nil {
			return nil, err
		}
		if shown {
			kept = append(kept, v.Path)
		} else {
			changed = append(changed, v.Path)
		}
	}
	for _, m := range table {
		if !slices.Contains(kept, m.At) {
			changed = append(changed, m.At)
		}
	}
	for _, m := range table {
		if slices.ContainsFunc(changed, func(path string) bool { return m.At == path || strings.HasPrefix(m.At, path+"/") }) {
			all = append(all, m.At)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all, nil
}

// yielding limits how long virtiofsd may take to close what a guest has forgotten. The guest may
// open it again, and then must forget it again.
const yielding = 10 * time.Second

// letGo unmounts the doomed mounts: first in the guest, which reports what uses them, then on the
// host, which does not rely on the guest's answer.
func (s *remounting) letGo(ctx context.Context, doomed []string) error {
	if len(doomed) == 0 {
		return nil
	}
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if err := s.forget(ctx, doomed); err != nil {
			return err
		}
		err := rootfs.InSpace(s.sharer, func(func() ([]rootfs.Mounted, error)) error {
			for len(doomed) > 0 {
				if err := unix.Unmount(doomed[0], unix.UMOUNT_NOFOLLOW); err != nil {
					return &os.PathError{Op: "unmount", Path: doomed[0], Err: err}
				}
				doomed = doomed[1:]
			}
			return nil
		})
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EBUSY):
			return problem.New(problem.Failed, "node %s: a volume cannot be taken away", s.m.Ref.Name).At(s.m.Ref.Site).
				Because(err)
		case time.Since(begun) > yielding:
			if open := s.opened(doomed[0]); open != "" {
				err = fmt.Errorf("%w: virtiofsd has %s open", err, open)
			}
			return problem.New(problem.Failed, "node %s: %s is in use by something that its guest does not name", s.m.Ref.Name,
				doomed[0]).
				At(s.m.Ref.Site).Because(err).Try("stop what uses it and run the same command again")
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// supply mounts volumes that the node lacks, outermost first, and lets the guest find them.
func (s *remounting) supply(ctx context.Context, lacks []nodedir.Mount) error {
	if len(lacks) == 0 {
		return nil
	}
	if err := s.mount(lacks); err != nil {
		return err
	}
	var places []string
	for _, v := range lacks {
		places = append(places, v.Path)
	}
	return s.find(ctx, places)
}

// mount mounts volumes in the root of the node, outermost first.
func (s *remounting) mount(lacks []nodedir.Mount) error {
	var sources []string
	for _, v := range lacks {
		sources = append(sources, v.Source)
	}
	loose, err := image.Loose(s.ids, sources...) // in this namespace the volumes are visible
	if err != nil {
		return problem.New(problem.Failed, "node %s: its volumes cannot be mounted", s.m.Ref.Name).At(s.m.Ref.Site).
			Because(err)
	}
	defer image.Drop(loose) //nolint:errcheck // what was fastened stays
	return rootfs.InSpace(s.sharer, func(func() ([]rootfs.Mounted, error)) error {
		for i, v := range lacks {
			if err := s.fasten(loose[i], v.Path); err != nil {
				return problem.New(problem.Failed, "node %s: the volume cannot be mounted at %s", s.m.Ref.Name, v.Path).
					At(s.m.Ref.Site).Because(err).
					Try("a volume is mounted on a directory of the node, which no link leads to")
			}
		}
		return nil
	})
}

// fasten mounts a loose mount in the root of the node, in whose namespace the calling thread is.
func (s *remounting) fasten(loose *os.File, path string) error {
	root, err := tree.Open("/")
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := root.MakeDown(path, s.ids.First, s.ids.First)
	if err != nil {
		return err
	}
	defer dir.Close()
	return rootfs.Fasten(loose, int(dir.Fd()))
}
