package image

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// canonical makes a tree that a container wrote one that every container can use: without overlayfs's notes, with file
// capabilities that belong to whoever is root where the file is run, and it makes sure that its owners are the container's.
func canonical(tree string, ids int) error {
	return filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		if isWhiteout(st) {
			return os.Lchown(path, 0, 0) // overlayfs made it, for nobody in the container
		}
		if int64(st.Uid) >= int64(ids) || int64(st.Gid) >= int64(ids) {
			return fmt.Errorf("%s belongs to %d:%d, whom the container does not know", path, st.Uid, st.Gid)
		}
		if info.Mode()&fs.ModeSocket != 0 {
			return os.Remove(path) // nobody listens
		}
		names, err := attributeNames(path)
		if err != nil {
			return err
		}
		for name := range bookkeeping {
			if slices.Contains(names, name) {
				if err := unix.Lremovexattr(path, name); err != nil {
					return &os.PathError{Op: "lremovexattr " + name, Path: path, Err: err}
				}
			}
		}
		if slices.Contains(names, "security.capability") {
			return plainCapability(path)
		}
		return nil
	})
}

// plainCapability drops the root id from a file capability (capabilities(7), version 3): set in a user namespace, it names that
// namespace's root as the host sees it, and would be nothing to a container with other ids.
func plainCapability(path string) error {
	value := make([]byte, 24)
	n, err := unix.Lgetxattr(path, "security.capability", value)
	if err != nil {
		return &os.PathError{Op: "lgetxattr security.capability", Path: path, Err: err}
	}
	const version3, version2, mask = 0x03000000, 0x02000000, 0xff000000
	magic := binary.LittleEndian.Uint32(value)
	if n != 24 || magic&mask != version3 {
		return nil
	}
	binary.LittleEndian.PutUint32(value, magic&^mask|version2)
	if err := unix.Lsetxattr(path, "security.capability", value[:20], 0); err != nil {
		return &os.PathError{Op: "lsetxattr security.capability", Path: path, Err: err}
	}
	return nil
}

// isWhiteout tells overlayfs's mark for a file that is hidden from the layers below.
func isWhiteout(st *syscall.Stat_t) bool {
	return st.Mode&syscall.S_IFMT == syscall.S_IFCHR && st.Rdev == 0
}
