package tree

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// localFilesystems are the file systems on which only this host's kernel decides who may open a file, by its
// owner and mode. A file server, a FUSE process, /proc and /sys decide by who opens, reads or
// looks.
var localFilesystems = []int64{
	unix.OVERLAYFS_SUPER_MAGIC, unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC,
	unix.F2FS_SUPER_MAGIC, unix.BCACHEFS_SUPER_MAGIC,
	0x2fc12fc1, // ZFS
}

// OpenOwned opens a regular file for reading that the root user of a user namespace may read. owned
// reports whether an id belongs to that namespace. By its capabilities this root may read every
// file whose owner and group, as seen through the mount, are in the namespace, whatever the mode.
// So the file and all directories on the way must belong to the namespace. A link on the way is an
// error, and so is anything else that would need a closer look. OpenOwned does not block, and the
// returned Stat_t describes the opened file.
func (r *Root) OpenOwned(name string, owned func(id uint32) bool) (*os.File, *unix.Stat_t, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	parts := strings.Split(relative(name), "/")
	dir, err := unix.Openat(r.Fd(), ".", flags, 0)
	for err == nil {
		if err = checkOwned(dir, owned); err != nil || len(parts) == 1 {
			break
		}
		above := dir
		dir, err = unix.Openat(above, parts[0], flags, 0)
		unix.Close(above) //nolint:errcheck // it was only gone through
		parts = parts[1:]
	}
	if err != nil {
		unix.Close(dir) //nolint:errcheck // it was only gone through
		return nil, nil, r.pathError("open", name, err)
	}
	fd, st, err := OpenEntry(dir, parts[0])
	unix.Close(dir) //nolint:errcheck // it was only gone through
	if err != nil {
		return nil, nil, r.pathError("open", name, err)
	}
	f := os.NewFile(uintptr(fd), r.at(name))
	if err := checkOwned(fd, owned); err != nil {
		f.Close() //nolint:errcheck // it was not read
		return nil, nil, r.pathError("open", name, err)
	}
	return f, &st, nil
}

// checkOwned returns an error unless an open file belongs to these ids and is on one of the judged file
// systems.
func checkOwned(fd int, owned func(id uint32) bool) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if !owned(st.Uid) || !owned(st.Gid) {
		return fmt.Errorf("it belongs to %d:%d: %w", st.Uid, st.Gid, fs.ErrPermission)
	}
	var on unix.Statfs_t
	if err := unix.Fstatfs(fd, &on); err != nil {
		return err
	}
	if !slices.Contains(localFilesystems, on.Type) {
		return fmt.Errorf("it is on a file system of type %#x: %w", on.Type, fs.ErrPermission)
	}
	return nil
}
