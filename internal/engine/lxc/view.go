package lxc

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/engine/nodedir"
	"orrery/internal/image"
	"orrery/internal/image/rootfs"
	"orrery/internal/problem"
)

// A view describes the volumes of a node in one of its mount namespaces.
type view struct {
	pid  int
	at   func(nodedir.Mount) string  // returns where a volume is mounted
	ours func(rootfs.MountInfo) bool // reports whether a mount may be unmounted
	// Open opens a directory and creates it if it is missing. If open is nil, missing volumes are
	// not mounted in this namespace.
	open func(path string) (*os.File, error)
}

// node returns the view of the node's init, and of all processes without a mount namespace of their
// own. Changes there propagate to the other namespaces, because systemd shares its mounts with
// them.
func (s *remounting) node() view {
	return view{
		s.c.init(), func(m nodedir.Mount) string { return m.Path }, func(rootfs.MountInfo) bool { return true },
		func(path string) (*os.File, error) { return openDirectory(path, s.ids.First) },
	}
}

// monitor returns the view of LXC's monitor. It sees the host and the binds, from which LXC takes
// the volumes again when the node reboots.
func (s *remounting) monitor() view {
	binds := s.c.Bind("") + "/"
	return view{
		s.c.monitor(), func(m nodedir.Mount) string { return m.Bind },
		func(m rootfs.MountInfo) bool { return strings.HasPrefix(m.At, binds) },
		func(path string) (*os.File, error) {
			if err := os.MkdirAll(path, 0o755); err != nil {
				return nil, err
			}
			return os.Open(path)
		},
	}
}

// views returns all views of the node. The node's own comes first, so that nothing has been
// unmounted yet if a volume turns out to be in use there.
func (s *remounting) views() []view {
	all := []view{s.node(), s.monitor()}
	for _, pid := range s.c.mountNamespaces(all[0].pid, all[1].pid) {
		other := s.node()
		other.pid, other.open = pid, nil
		all = append(all, other)
	}
	return all
}

// unmountUnwanted unmounts what the node must not see.
func (s *remounting) unmountUnwanted(v view) error {
	for deadline := time.Now().Add(2 * time.Second); ; {
		err := rootfs.InMountNamespace(v.pid, func(table func() ([]rootfs.MountInfo, error)) error {
			return s.unmount(v, table)
		})
		if errors.Is(err, os.ErrNotExist) && v.open == nil {
			return nil // a service has ended, and its namespace with it
		}
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		who := s.describeUsers()
		if len(who) == 0 && time.Now().Before(deadline) {
			// The kernel has not yet cleaned up after a process that has just ended.
			time.Sleep(2 * time.Millisecond)
			continue
		}
		return s.busyProblem(err, who)
	}
}

func (s *remounting) busyProblem(err error, who []string) error {
	var path *os.PathError
	where := ""
	if errors.As(err, &path) {
		where = path.Path
	}
	p := problem.New(problem.Failed, "node %s: %s is in use by %s", s.c.ref.Name, where,
		strings.Join(who[:min(len(who), 5)], ", ")).
		At(s.c.ref.Site).Try("stop what uses it and run the same command again")
	if len(who) == 0 {
		p.What = "node " + s.c.ref.Name + ": " + where + " is in use by a process unknown to the kernel"
	}
	return p
}

// unmount unmounts the doomed mounts in the thread's mount namespace, innermost first.
func (s *remounting) unmount(v view, table func() ([]rootfs.MountInfo, error)) error {
	mounts, err := table()
	if err != nil {
		return err
	}
	for _, m := range s.mountsToRemove(v, mounts) {
		if top, err := rootfs.MountID(m.At); err != nil || top != m.ID {
			return errors.Join(err, problem.New(problem.Failed, "node %s: something else is mounted over the volume at %s",
				s.c.ref.Name, m.At).
				At(s.c.ref.Site).Try("unmount it in the node"))
		}
		if err := unix.Unmount(m.At, unix.UMOUNT_NOFOLLOW); err != nil {
			return problem.New(problem.Failed, "node %s: a volume cannot be removed", s.c.ref.Name).At(s.c.ref.Site).
				Because(&os.PathError{Op: "unmount", Path: m.At, Err: err})
		}
	}
	return nil
}

// mountsToRemove returns the mounts of a view that must be unmounted, innermost first. These are mounts
// that show all or part of an unwanted volume, and wanted volumes inside a path that changes, which
// are mounted again later.
func (s *remounting) mountsToRemove(v view, table []rootfs.MountInfo) []rootfs.MountInfo {
	var all []rootfs.MountInfo
	var changed []string
	parents := map[uint64]uint64{}
	for _, m := range table {
		parents[m.ID] = m.Parent
		if s.unwanted(v, m) {
			changed = append(changed, m.At)
		}
	}
	for _, w := range s.wanted {
		if !s.isMounted(table, w, v.at(w)) && v.open != nil {
			changed = append(changed, v.at(w))
		}
	}
	for _, m := range table {
		inside := slices.ContainsFunc(changed, func(path string) bool { return strings.HasPrefix(m.At, path+"/") })
		if s.unwanted(v, m) || inside && s.isWanted(v, m) {
			all = append(all, m)
		}
	}
	depth := func(m rootfs.MountInfo) (n int) {
		for id, ok := m.ID, true; ok && n < len(table); n++ {
			id, ok = parents[id]
		}
		return n
	}
	slices.SortStableFunc(all, func(a, b rootfs.MountInfo) int { return cmp.Compare(depth(b), depth(a)) })
	return all
}

func (s *remounting) isWanted(v view, m rootfs.MountInfo) bool {
	return slices.ContainsFunc(s.wanted, func(w nodedir.Mount) bool { return m.At == v.at(w) && s.showsVolume(w, m) })
}

// unwanted reports whether a mount shows a volume that the node must not see, or something inside
// it. Services may have mounted parts of a volume elsewhere.
func (s *remounting) unwanted(v view, m rootfs.MountInfo) bool {
	if !v.ours(m) || s.isWanted(v, m) || m.Source == s.origins[s.etc.Source] {
		return false
	}
	return slices.ContainsFunc(s.known, func(k nodedir.Mount) bool {
		origin, ok := s.origins[k.Source]
		return ok && origin.Contains(m.Source) || !ok && s.showsVolume(k, m)
	})
}

// describeUsers returns descriptions of what keeps doomed mounts busy.
func (s *remounting) describeUsers() []string {
	var doomed []rootfs.MountInfo
	var names []string
	for _, v := range s.views() {
		_ = rootfs.InMountNamespace(v.pid, func(table func() ([]rootfs.MountInfo, error)) error {
			mounts, err := table()
			some := s.mountsToRemove(v, mounts)
			for _, m := range mounts {
				on := slices.ContainsFunc(some, func(d rootfs.MountInfo) bool { return d.ID == m.Parent })
				if on && !slices.ContainsFunc(some, func(d rootfs.MountInfo) bool { return d.ID == m.ID }) {
					names = append(names, "the mount at "+m.At)
				}
			}
			doomed = append(doomed, some...)
			return err
		})
	}
	slices.Sort(names)
	return append(slices.Compact(names), usersOf(doomed)...)
}

// mountMissing mounts the wanted volumes that are missing in the views, outermost first.
func (s *remounting) mountMissing(views ...view) error {
	lacks := make([][]nodedir.Mount, len(views))
	var sources []string
	for i, v := range views {
		var err error
		if lacks[i], err = s.missingVolumes(v); err != nil {
			return err
		}
		for _, m := range lacks[i] {
			sources = append(sources, m.Source)
		}
	}
	if len(sources) == 0 {
		return nil
	}
	loose, err := image.DetachedMounts(s.ids, sources...) // in this namespace the volumes are visible
	if err != nil {
		return problem.New(problem.Failed, "node %s: its volumes cannot be mounted", s.c.ref.Name).At(s.c.ref.Site).
			Because(err)
	}
	defer image.CloseMounts(loose) //nolint:errcheck // what was fastened stays
	for i, rest := 0, loose; i < len(views); i++ {
		if err := s.attach(views[i], lacks[i], rest); err != nil {
			return err
		}
		rest = rest[len(lacks[i]):]
	}
	return nil
}

// missingVolumes returns the volumes that are missing in a view. It returns a problem instead of mounting
// over a foreign mount.
func (s *remounting) missingVolumes(v view) (lacks []nodedir.Mount, err error) {
	err = rootfs.InMountNamespace(v.pid, func(table func() ([]rootfs.MountInfo, error)) error {
		mounts, err := table()
		for _, w := range s.wanted {
			if s.isMounted(mounts, w, v.at(w)) {
				continue
			}
			if slices.ContainsFunc(mounts, func(m rootfs.MountInfo) bool { return m.At == v.at(w) }) {
				return problem.New(problem.Failed, "node %s: something else is mounted at %s", s.c.ref.Name, w.Path).
					At(s.c.ref.Site).Try("unmount it in the node")
			}
			lacks = append(lacks, w)
		}
		return err
	})
	return lacks, err
}

// attach attaches loose mounts where a view lacks them.
func (s *remounting) attach(v view, lacks []nodedir.Mount, loose []*os.File) error {
	if len(lacks) == 0 {
		return nil
	}
	return rootfs.InMountNamespace(v.pid, func(func() ([]rootfs.MountInfo, error)) error {
		for i, m := range lacks {
			dir, err := v.open(v.at(m))
			if err == nil {
				err = rootfs.AttachMount(loose[i], int(dir.Fd()))
				dir.Close() //nolint:errcheck // it was only opened to be mounted on
			}
			if err != nil {
				return problem.New(problem.Failed, "node %s: the volume cannot be mounted at %s", s.c.ref.Name, m.Path).
					At(s.c.ref.Site).Because(err).
					Try("mount the volume on a directory of the node, without symbolic links in its path")
			}
		}
		return nil
	})
}

// sourceRemoved reports whether the directory behind a mount has been removed from its file system.
func sourceRemoved(m rootfs.MountInfo) bool { return strings.HasSuffix(m.Source.Path, "//deleted") }
