package volume

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/tree"
)

// setMetadata sets the owner, mode, attributes and times of an entry in an open directory of the copy to
// those of its source.
func (r *round) setMetadata(path string, dir int, name string, like *unix.Stat_t, attrs map[string][]byte) error {
	m := tree.Header{
		Mode: like.Mode, Uid: int(like.Uid), Gid: int(like.Gid), Attrs: attrs, Modified: time.Unix(like.Mtim.Unix()),
		Accessed: time.Unix(like.Atim.Unix()),
	}
	return asCopyError(path, m.SetMetadata(dir, name, func(attr string, err error) error {
		return r.checkAttribute(path, attr, err)
	}))
}

// checkAttribute handles the result of setting one. Some file systems support none, or fewer than
// others.
func (r *round) checkAttribute(path, attr string, err error) error {
	none := errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.E2BIG) || errors.Is(err, unix.EPERM) && os.Geteuid() != 0
	if none || errors.Is(err, unix.ENOSPC) && r.hasSpace() {
		r.recordSkipped(path, fmt.Sprintf("its attribute %s: %v", attr, err))
		return nil
	}
	return asCopyError(path, err)
}

// clearInherited removes attributes from a directory of the copy that new files in it would inherit, such
// as a default ACL or the group.
func clearInherited(fd int, bare bool) error {
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
