package host

import (
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// HoldInMemory makes sure that a directory is on a file system in memory, because secrets stand there that must reach no disk.
// Where its parent is none, as on a machine whose /run is on a disk, a tmpfs is mounted.
func HoldInMemory(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return err
	}
	if s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC {
		return nil
	}
	if err := unix.Mount("orrery", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return problem.New(problem.Unable, "no tmpfs can be mounted for secrets").At(dir).Because(err)
	}
	return nil
}

// ReleaseMemory takes away the tmpfs that HoldInMemory mounted, unless it is in use.
func ReleaseMemory(dir string) error {
	var here, above unix.Stat_t
	if unix.Stat(dir, &here) != nil || unix.Stat(dir+"/..", &above) != nil || here.Dev == above.Dev {
		return nil
	}
	if err := unix.Unmount(dir, unix.UMOUNT_NOFOLLOW); err != nil && err != unix.EBUSY {
		return err
	}
	return nil
}
