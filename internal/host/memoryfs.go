package host

import (
	"context"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// EnsureInMemory makes sure that a directory is on a file system in memory, because it will hold
// secrets that must not reach a disk. If the directory is on a disk, as on a machine whose /run is
// on a disk, it mounts a tmpfs. The last process that calls letGo unmounts the tmpfs if nothing is
// left in it.
func EnsureInMemory(ctx context.Context, dir string) (letGo func(), err error) {
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
			return nil, problem.New(problem.Unable, "the tmpfs for secrets could not be mounted").At(dir).Because(err)
		}
	}
	hold, err := os.Open(dir) // an open file keeps the mount busy
	if err != nil {
		return nil, err
	}
	return func() {
		hold.Close()
		ctx, cancel := cleanupContext(ctx)
		defer cancel()
		unmountMemory(ctx, dir)
	}, nil
}

// unmountMemory unmounts the tmpfs that EnsureInMemory mounted, unless it is in use. If it cannot be
// unmounted, it stays, which does no harm.
func unmountMemory(ctx context.Context, dir string) {
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

// lockMount waits for the lock of the mount at a directory. The lock file is beside the
// directory, because a mount may cover the files inside. The parent directory cannot be the lock,
// because every user can open and lock it.
func lockMount(ctx context.Context, dir string) (unlock func(), err error) {
	return lockFile(ctx, filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".lock"),
		"the lock of the mount at "+dir)
}
