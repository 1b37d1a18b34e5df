package volume

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/tree"
)

// dress sets the owner, mode, attributes and times of an entry in an open directory of the copy to
// those of its source.
func (r *round) dress(path string, dir int, name string, like *unix.Stat_t, attrs map[string][]byte) error {
	m := tree.Made{
		Mode: like.Mode, Uid: int(like.Uid), Gid: int(like.Gid), Attrs: attrs, Modified: time.Unix(like.Mtim.Unix()),
		Accessed: time.Unix(like.Atim.Unix()),
	}
	return wrote(path, m.Dress(dir, name, func(attr string, err error) error { return r.attribute(path, attr, err) }))
}

// attribute handles the result of setting one. Some file systems support none, or fewer than
// others.
func (r *round) attribute(path, attr string, err error) error {
	none := errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.E2BIG) || errors.Is(err, unix.EPERM) && os.Geteuid() != 0
	if none || errors.Is(err, unix.ENOSPC) && r.roomy() {
		r.leave(path, fmt.Sprintf("its attribute %s: %v", attr, err))
		return nil
	}
	return wrote(path, err)
}

// undress removes attributes from a directory of the copy that new files in it would inherit, such
// as a default ACL or the group.
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
