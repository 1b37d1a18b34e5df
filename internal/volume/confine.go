package volume

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// An isolatedDir is a directory that a program cannot leave by path, even if other processes write there.
// In it, links are not followed, and device files cannot be opened. Links can still be read and
// made.
type isolatedDir struct {
	dir      string
	readOnly bool
}

// withIsolatedDirs runs work in a mount namespace of its own, in which directories are shut. This includes
// programs that work starts.
func withIsolatedDirs(dirs []isolatedDir, work func() error) error {
	return host.OnLockedThread(func() error {
		if err := isolate(dirs); err != nil {
			return problem.New(problem.Unable, "the files of nodes cannot be isolated from the host").Because(err)
		}
		return work()
	})
}

func isolate(dirs []isolatedDir) error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return &os.PathError{Op: "make mounts private", Path: "/", Err: err}
	}
	for _, d := range dirs {
		if err := d.close(); err != nil {
			return err
		}
	}
	return nil
}

// close mounts the directory over itself, with all mounts below it.
func (d isolatedDir) close() error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, d.dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return &os.PathError{Op: "open_tree", Path: d.dir, Err: err}
	}
	defer unix.Close(tree) //nolint:errcheck // it is mounted by then
	as := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSYMFOLLOW | unix.MOUNT_ATTR_NODEV |
		unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC}
	if d.readOnly {
		as.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &as)
	if err == nil {
		err = unix.MoveMount(tree, "", unix.AT_FDCWD, d.dir, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS)
	}
	if errors.Is(err, unix.EINVAL) {
		err = errors.Join(err, errors.New("this needs Linux 5.19 or newer"))
	}
	if err != nil {
		return &os.PathError{Op: "mount", Path: d.dir, Err: err}
	}
	return nil
}
