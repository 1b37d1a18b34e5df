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
		return checkUnchanged(r, n)
	}
	s := &remounting{nodes: e.Nodes, m: m, agent: e.volumeAgent(m), ids: r.IDs(), sharer: m.virtiofsdPID()}
	if s.sharer == 0 {
		return engine.NotRunning(m.Ref)
	}
	if m.frozenOrHalted() {
		return problem.New(problem.Failed, "node %s is frozen: its volumes cannot be changed", n.Name).At(n.Site).
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
	before, err := s.mountedVolumes(r)
	if err != nil {
		return err
	}
	if err := s.apply(ctx, e.Volumes(n, n.Mounts)); err != nil {
		back := s.apply(context.WithoutCancel(ctx), before)
		if back == nil {
			back = m.WriteMounts(r, old)
		}
		return errors.Join(err, back)
	}
	return m.WriteMounts(r, n.Mounts)
}

// checkUnchanged returns a problem if the volumes of a running node with a root disk would change. Its guest
// mounted them above that disk when it booted.
func checkUnchanged(r *nodedir.Record, n *spec.Node) error {
	if slices.Equal(r.Mounts, n.Mounts) {
		return nil
	}
	return problem.New(problem.Unable, "node %s is running with its private layer on a disk: its volumes cannot be changed",
		n.Name).At(n.Site).
		Try("orrery stop %s, and run the same command again", n.Name)
}

// remounting is a change of a running node's volumes.
type remounting struct {
	nodes  *nodedir.Nodes
	m      machine
	agent  func(ctx context.Context) (volumeAgent, error) // connects to the guest's agent
	ids    rootfs.IDs
	sharer int // process id of virtiofsd
}

// mountedVolumes returns the recorded volumes that virtiofsd sees.
func (s *remounting) mountedVolumes(r *nodedir.Record) (all []nodedir.Mount, err error) {
	table, err := s.volumeMounts()
	if err != nil {
		return nil, err
	}
	for _, m := range r.Mounts { // one by one, because a path may be recorded twice
		for _, v := range s.nodes.Volumes(&r.Node, []spec.Mount{m}) {
			shown, err := isMounted(table, v)
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

// volumeMounts returns the volumes that are mounted in the root of the node.
func (s *remounting) volumeMounts() ([]rootfs.MountInfo, error) {
	all, err := rootfs.MountsOf(strconv.Itoa(s.sharer))
	return slices.DeleteFunc(all, func(m rootfs.MountInfo) bool {
		return m.At == "/" || m.At == etc || m.At == "/"+vm.DiskDir
	}), err
}

// etc is the directory in a node that shows the host's files for it.
const etc = "/etc/orrery"

// isMounted reports whether a volume is mounted at its path.
func isMounted(table []rootfs.MountInfo, v nodedir.Mount) (bool, error) {
	origins, err := rootfs.MountSourcesOf(v.Source)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(table, func(m rootfs.MountInfo) bool { return m.At == v.Path && m.Source == origins[0] }),
		nil
}

// apply makes the wanted volumes, and no others, visible to the node.
func (s *remounting) apply(ctx context.Context, wanted []nodedir.Mount) error {
	table, err := s.volumeMounts()
	if err != nil {
		return err
	}
	doomed, err := mountsToRemove(table, wanted)
	if err != nil {
		return err
	}
	if err := s.unmount(ctx, doomed); err != nil {
		return err
	}
	return s.mountMissing(ctx, slices.DeleteFunc(slices.Clone(wanted), func(v nodedir.Mount) bool {
		return !slices.Contains(doomed, v.Path) &&
			slices.ContainsFunc(table, func(m rootfs.MountInfo) bool { return m.At == v.Path })
	}))
}

// mountsToRemove returns the mount points that must be unmounted, innermost first: mounts that are not
// wanted there, and what stands inside of what changes, which comes back.
func mountsToRemove(table []rootfs.MountInfo, wanted []nodedir.Mount) (all []string, err error) {
	var changed, kept []string
	for _, v := range wanted {
		shown, err := isMounted(table, v)
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

// unmountTimeout limits how long virtiofsd may take to close what a guest has forgotten. The guest may
// open it again, and then must forget it again.
const unmountTimeout = 10 * time.Second

// unmount unmounts the doomed mounts: first in the guest, which reports what uses them, then on the
// host, which does not rely on the guest's answer.
func (s *remounting) unmount(ctx context.Context, doomed []string) error {
	if len(doomed) == 0 {
		return nil
	}
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if err := s.unmountInGuest(ctx, doomed); err != nil {
			return err
		}
		err := rootfs.InMountNamespace(s.sharer, func(func() ([]rootfs.MountInfo, error)) error {
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
			return problem.New(problem.Failed, "node %s: a volume cannot be removed", s.m.Ref.Name).At(s.m.Ref.Site).
				Because(err)
		case time.Since(begun) > unmountTimeout:
			if open := s.openFilesBelow(doomed[0]); open != "" {
				err = fmt.Errorf("%w: virtiofsd has %s open", err, open)
			}
			return problem.New(problem.Failed, "node %s: %s is in use by a process unknown to its guest", s.m.Ref.Name,
				doomed[0]).
				At(s.m.Ref.Site).Because(err).Try("stop what uses it and run the same command again")
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// mountMissing mounts volumes that the node lacks, outermost first, and lets the guest find them.
func (s *remounting) mountMissing(ctx context.Context, lacks []nodedir.Mount) error {
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
	return s.findInGuest(ctx, places)
}

// mount mounts volumes in the root of the node, outermost first.
func (s *remounting) mount(lacks []nodedir.Mount) error {
	var sources []string
	for _, v := range lacks {
		sources = append(sources, v.Source)
	}
	loose, err := image.DetachedMounts(s.ids, sources...) // in this namespace the volumes are visible
	if err != nil {
		return problem.New(problem.Failed, "node %s: its volumes cannot be mounted", s.m.Ref.Name).At(s.m.Ref.Site).
			Because(err)
	}
	defer image.CloseMounts(loose) //nolint:errcheck // what was fastened stays
	return rootfs.InMountNamespace(s.sharer, func(func() ([]rootfs.MountInfo, error)) error {
		for i, v := range lacks {
			if err := s.attach(loose[i], v.Path); err != nil {
				return problem.New(problem.Failed, "node %s: the volume cannot be mounted at %s", s.m.Ref.Name, v.Path).
					At(s.m.Ref.Site).Because(err).
					Try("mount the volume on a directory of the node, without symbolic links in its path")
			}
		}
		return nil
	})
}

// attach mounts a loose mount in the root of the node, in whose namespace the calling thread is.
func (s *remounting) attach(loose *os.File, path string) error {
	root, err := tree.Open("/")
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := root.MkdirAllNoFollow(path, s.ids.First, s.ids.First)
	if err != nil {
		return err
	}
	defer dir.Close()
	return rootfs.AttachMount(loose, int(dir.Fd()))
}
