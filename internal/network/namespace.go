package network

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// namespaceDir is where ip-netns(8) looks for network namespaces.
const namespaceDir = "/run/netns"

// openNamespace opens a network namespace by its name, and makes it if it does not exist. Its mark
// is the alias of its loopback link. The alias is set before the namespace gets its name, so a
// namespace of that name without the mark belongs to another program.
func openNamespace(name, mark string) (*os.File, error) {
	path := filepath.Join(namespaceDir, name)
	if !isNamespace(path) {
		if err := makeNamespace(path, mark); err != nil {
			return nil, err
		}
	}
	space, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := host.InNetNS(space, func() error { return checkMark(name, mark) }); err != nil {
		space.Close()
		return nil, err
	}
	return space, nil
}

func checkMark(name, mark string) error {
	lo, err := netlink.LinkByName("lo")
	if err == nil && lo.Attrs().Alias != mark {
		return problem.New(problem.Unable, "the host has a network namespace %s that is not Orrery's", name).
			Try("remove it: ip netns delete %s", name)
	}
	return err
}

// isNamespace reports whether a namespace is mounted on a file.
func isNamespace(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.NSFS_MAGIC
}

// makeNamespace makes a namespace that exists without a process, by mounting it on a file.
func makeNamespace(path, mark string) error {
	if err := shareDirectory(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o444) // a killed run may have left the file without a mount
	if err != nil {
		return err
	}
	f.Close()
	return host.OnLockedThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetAlias(lo, mark); err != nil {
			return err
		}
		return unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, "")
	})
}

// shareDirectory makes the directory of namespaces a mount that all mount namespaces share, as
// ip-netns(8) does for its first namespace. If that happened later, mounts below it would be hidden
// and could not be removed.
func shareDirectory(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	share := func() error { return unix.Mount("", dir, "none", unix.MS_SHARED|unix.MS_REC, "") }
	err := share()
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	if err := unix.Mount(dir, dir, "none", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return share()
}

// removeNamespace removes a network namespace and its name, if it exists and is Orrery's.
func removeNamespace(name, mark string) error {
	path := filepath.Join(namespaceDir, name)
	for isNamespace(path) {
		space, err := os.Open(path)
		if err != nil {
			return err
		}
		err = host.InNetNS(space, func() error { return checkMark(name, mark) })
		space.Close()
		var foreign *problem.Problem
		if errors.As(err, &foreign) {
			return nil
		}
		if err == nil {
			err = unix.Unmount(path, unix.MNT_DETACH)
		}
		if err != nil {
			return err
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
