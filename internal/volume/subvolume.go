package volume

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/tree"
)

// rootInode is the number of the root directory of every btrfs subvolume
// (BTRFS_FIRST_FREE_OBJECTID).
const rootInode = 256

// isSubvolume reports whether a directory is the root of a btrfs subvolume.
func isSubvolume(dir string) bool {
	var s unix.Stat_t
	return onBtrfs(dir) && unix.Lstat(dir, &s) == nil && s.Ino == rootInode
}

func onBtrfs(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && s.Type == unix.BTRFS_SUPER_MAGIC
}

// canSnapshot reports whether a snapshot of a tree can be made in a directory. A snapshot leaves
// out nested subvolumes, so there must be none.
func canSnapshot(from, dir string) bool {
	if _, err := exec.LookPath("btrfs"); err != nil || !isSubvolume(from) || !onBtrfs(dir) {
		return false
	}
	here, ok1 := fileSystem(from)
	target, ok2 := fileSystem(dir)
	inside, ok3 := subvolumesIn(from)
	return ok1 && ok2 && ok3 && here == target && inside == 0
}

// fileSystem returns the UUID of a btrfs file system (struct btrfs_ioctl_fs_info_args of
// linux/btrfs.h).
func fileSystem(dir string) (uuid [16]byte, ok bool) {
	var info struct {
		maxID, devices uint64
		uuid           [16]byte
		_              [992]byte
	}
	const fsInfo = 0x8400941f // BTRFS_IOC_FS_INFO
	ok = btrfsIoctl(dir, fsInfo, unsafe.Pointer(&info))
	return info.uuid, ok
}

// subvolumesIn counts the subvolumes in a subvolume (struct btrfs_ioctl_get_subvol_rootref_args).
func subvolumesIn(dir string) (n int, ok bool) {
	var refs struct {
		least uint64
		refs  [255]struct{ tree, dir uint64 }
		items uint8
		_     [7]uint8
	}
	const rootRefs = 0xd000943d // BTRFS_IOC_GET_SUBVOL_ROOTREF
	ok = btrfsIoctl(dir, rootRefs, unsafe.Pointer(&refs))
	return int(refs.items), ok
}

func btrfsIoctl(dir string, request uintptr, answer unsafe.Pointer) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(answer))
	return errno == 0
}

func snapshot(ctx context.Context, from, to string) error {
	return run(ctx, "btrfs", "subvolume", "snapshot", from, to)
}

// makeDirectory makes a directory for large data. If possible, it makes a subvolume, whose snapshot
// costs nothing.
func makeDirectory(path string, above string) error {
	if onBtrfs(above) && run(context.Background(), "btrfs", "subvolume", "create", path) == nil {
		return os.Chmod(path, 0o700)
	}
	return os.Mkdir(path, 0o700)
}

// Erase removes a tree or a subvolume. It does nothing if the tree does not exist. It renames the
// tree first, so that a killed process leaves it complete or not there at all. A tree that lacks
// files must not be mistaken for a complete one.
func Erase(path string) error {
	if strings.HasPrefix(filepath.Base(path), ".") {
		return deleteTree(path)
	}
	gone := removedName(path)
	if err := deleteTree(gone); err != nil {
		return err
	}
	if err := os.Rename(path, gone); err != nil {
		return deleteTree(path) // it does not exist, or something is mounted there
	}
	return deleteTree(gone)
}

// Sweep removes what a killed Erase left of a site's volumes and of copies of them.
func Sweep(dirs host.Dirs, key string) error {
	var err error
	for _, root := range []string{dirs.Volumes(key),
		filepath.Join(dirs.Releases(key), "*", filepath.Base(dirs.VolumeCopies(key, 0)))} {
		left, _ := filepath.Glob(removedName(filepath.Join(root, "*", "*")))
		for _, path := range left {
			err = errors.Join(err, deleteTree(path))
		}
	}
	return err
}

// removedName returns the name to which a directory is renamed before it is removed.
func removedName(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".gone")
}

func deleteTree(path string) error {
	if isSubvolume(path) {
		_ = run(context.Background(), "btrfs", "subvolume", "delete", path) // otherwise RemoveAll takes longer
	}
	return tree.RemoveAll(path)
}
