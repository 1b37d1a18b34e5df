package host

import (
	"context"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// HoldInMemory makes sure that a directory is on a file system in memory, because secrets stand
// there that must reach no disk. Where its parent is none, as on a machine whose /run is on a disk,
// a tmpfs is mounted, which whoever lets go of it last takes away if there is nothing in it any
// more.
func HoldInMemory(ctx context.Context, dir string) (letGo func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	unlock, err := lockMount(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return nil, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if s.Type != unix.TMPFS_MAGIC && s.Type != unix.RAMFS_MAGIC {
		if err := unix.Mount("orrery", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=700"); err != nil {
			return nil, problem.New(problem.Unable, "no tmpfs can be mounted for secrets").At(dir).Because(err)
		}
	}
	hold, err := os.Open(dir) // what is open is in use, and stays mounted
	if err != nil {
		return nil, err
	}
	return func() {
		hold.Close()
		ctx, cancel := afterwards(ctx)
		defer cancel()
		releaseMemory(ctx, dir)
	}, nil
}

// releaseMemory takes the tmpfs away that HoldInMemory mounted, unless it is in use. If it cannot
// be, it stays, and does no harm.
func releaseMemory(ctx context.Context, dir string) {
	unlock, err := lockMount(ctx, dir)
	if err != nil {
		return
	}
	defer unlock()
	var here, above unix.Stat_t
	if unix.Stat(dir, &here) != nil || unix.Stat(filepath.Dir(dir), &above) != nil || here.Dev == above.Dev {
		return
	}
	for _, pattern := range []string{"settings.json", "sites/*", "nfs/*", "later/*", "claims/[^.]*"} {
		if found, err := filepath.Glob(filepath.Join(dir, pattern)); err != nil || len(found) > 0 {
			return
		}
	}
	_ = unix.Unmount(dir, unix.UMOUNT_NOFOLLOW)
}

// lockMount waits until nobody else mounts or unmounts something on a directory. The lock stands
// beside it, as what is in it may be covered; the directory above is no lock, because everybody can
// open and lock that.
func lockMount(ctx context.Context, dir string) (unlock func(), err error) {
	return lockFile(ctx, filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".lock"),
		"the lock of what is mounted on "+dir)
}
