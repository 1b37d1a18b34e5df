package rootfs

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// WithProcessRoot runs work with the overlay mounted that is the root of a process. A second overlay of the
// same directories would not see what the first one writes. Work sees the root as it was created,
// with the mounts Inside. It does not see what has been mounted in the root since.
func (o *Overlay) WithProcessRoot(pid int, work func() error) error {
	var loose *os.File
	err := InMountNamespace(pid, func(func() ([]MountInfo, error)) error {
		fd, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			return os.NewSyscallError("open_tree", err)
		}
		loose = os.NewFile(uintptr(fd), "root")
		return nil
	})
	if err != nil {
		return err
	}
	defer loose.Close() //nolint:errcheck // nothing was written to it
	return host.OnLockedThread(func() error {
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			return os.NewSyscallError("unshare", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return os.NewSyscallError("make mounts private", err)
		}
		if err := unix.MoveMount(int(loose.Fd()), "", unix.AT_FDCWD, o.Target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return &os.PathError{Op: "move_mount", Path: o.Target, Err: err}
		}
		if err := o.unmountExtra(); err != nil {
			return err
		}
		return work()
	})
}

// unmountExtra unmounts what is mounted in the root and is not one of Inside, the innermost first.
func (o *Overlay) unmountExtra() error {
	table, err := MountsOf("thread-self")
	if err != nil {
		return err
	}
	table = slices.DeleteFunc(table, func(m MountInfo) bool {
		in, below := strings.CutPrefix(m.At, o.Target+"/")
		return !below || slices.ContainsFunc(o.Inside, func(b Bind) bool { return strings.TrimPrefix(b.Target, "/") == in })
	})
	slices.SortFunc(table, func(a, b MountInfo) int { return cmp.Compare(len(b.At), len(a.At)) })
	for _, m := range table {
		if err := unix.Unmount(m.At, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return &os.PathError{Op: "unmount", Path: m.At, Err: err}
		}
	}
	return nil
}
