package volume

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/tree"
)

// dress gives an open file or directory of the copy its owner, mode, attributes and times, in this order: a change of owner drops the
// set-user-ID bit and capabilities, and an ACL goes with the mode. It is found by its name in an open directory, too.
func (r *round) dress(path string, fd, dir int, name string, like *unix.Stat_t, attrs map[string][]byte) error {
	if err := unix.Fchown(fd, int(like.Uid), int(like.Gid)); err != nil && os.Geteuid() == 0 {
		return wrote(path, err)
	}
	if err := unix.Fchmod(fd, like.Mode&0o7777); err != nil {
		return wrote(path, err)
	}
	for attr, value := range attrs {
		if err := r.attribute(path, attr, unix.Fsetxattr(fd, attr, value, 0)); err != nil {
			return err
		}
	}
	return wrote(path, unix.UtimesNanoAt(dir, name, []unix.Timespec{like.Atim, like.Mtim}, unix.AT_SYMLINK_NOFOLLOW))
}

// dressNode does so with what cannot be opened: links, named pipes, whiteouts.
func (r *round) dressNode(e *tree.Entry, dir int) error {
	if err := unix.Fchownat(dir, e.Name, int(e.Stat.Uid), int(e.Stat.Gid), unix.AT_SYMLINK_NOFOLLOW); err != nil && os.Geteuid() == 0 {
		return wrote(e.Path, err)
	}
	if e.Stat.Mode&unix.S_IFMT != unix.S_IFLNK {
		if err := unix.Fchmodat(dir, e.Name, e.Stat.Mode&0o7777, 0); err != nil {
			return wrote(e.Path, err)
		}
	}
	attrs, err := tree.Attributes(e.Dir, e.Name)
	if err != nil {
		return err
	}
	for attr, value := range attrs {
		if err := r.attribute(e.Path, attr, tree.SetAttribute(dir, e.Name, attr, value)); err != nil {
			return err
		}
	}
	return wrote(e.Path, unix.UtimesNanoAt(dir, e.Name, []unix.Timespec{e.Stat.Atim, e.Stat.Mtim}, unix.AT_SYMLINK_NOFOLLOW))
}

// attribute judges how setting one went. Some file systems take none, or fewer than others.
func (r *round) attribute(path, attr string, err error) error {
	none := errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.E2BIG) || errors.Is(err, unix.EPERM) && os.Geteuid() != 0
	if none || errors.Is(err, unix.ENOSPC) && r.roomy() {
		r.leave(path, fmt.Sprintf("its attribute %s: %v", attr, err))
		return nil
	}
	return wrote(path, err)
}

// undress lets a directory of the copy have no part in what is made in there: no ACL for that, and no group.
func undress(fd int, bare bool) error {
	if err := unix.Fchmod(fd, 0o700); err != nil || bare {
		return err
	}
	attrs, err := tree.FileAttributes(fd)
	if err != nil {
		return err
	}
	for attr := range attrs {
		if err := unix.Fremovexattr(fd, attr); err != nil && !errors.Is(err, unix.ENODATA) {
			return err
		}
	}
	return nil
}
