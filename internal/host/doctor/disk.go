package doctor

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// minFreeBytes is roughly the size of one base image and a few role layers, and of what their build
// needs.
const minFreeBytes = 4 << 30

// disk checks whether the disk of the state directory has room for layers and nodes.
func disk(state string) Facts {
	dir := state
	var fs unix.Statfs_t
	err := unix.Statfs(dir, &fs)
	for err != nil && filepath.Dir(dir) != dir { // it is created later
		dir = filepath.Dir(dir)
		err = unix.Statfs(dir, &fs)
	}
	if err != nil {
		return Facts{{"disk", false, Required, err.Error(), "create the directory " + state}}
	}
	free := int64(fs.Bavail) * fs.Bsize
	room := Fact{"disk", free >= minFreeBytes, Recommended, fmt.Sprintf("%s free for %s", formatGiB(free), state), ""}
	if !room.OK {
		room.Fix = fmt.Sprintf("make room for %s, or set ORRERY_STATE to another directory", formatGiB(minFreeBytes))
	}
	return Facts{room, fileSystem(fs.Type, state)}
}

// fileSystem checks that overlayfs can write private layers there, and that the file system can be
// idmapped.
func fileSystem(kind int64, dir string) Fact {
	const name = "file system"
	good := map[int64]string{
		unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
		unix.F2FS_SUPER_MAGIC: "f2fs",
		unix.TMPFS_MAGIC:      "tmpfs", // since Linux 6.3
	}
	if what, ok := good[kind]; ok {
		return Fact{name, true, Recommended, what, ""}
	}
	bad := map[int64]string{
		unix.OVERLAYFS_SUPER_MAGIC: "overlayfs", unix.NFS_SUPER_MAGIC: "nfs", unix.FUSE_SUPER_MAGIC: "fuse",
		unix.MSDOS_SUPER_MAGIC: "vfat",
	}
	fix := fmt.Sprintf("put %s, or the directory that ORRERY_STATE names, on ext4, xfs or btrfs", dir)
	if what, ok := bad[kind]; ok {
		return Fact{name, false, Required, what + " cannot hold the private layers of nodes", fix}
	}
	return Fact{name, false, Recommended, fmt.Sprintf("unknown type (%#x)", kind), fix}
}
