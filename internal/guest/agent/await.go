package agent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Await waits until a path exists. The kernel notifies it of new files in the parent directory, or
// in the nearest existing ancestor. It also notifies it of mounts, as they may cover the directory.
func (guest) Await(ctx context.Context, path string) error {
	// The file reports each change once, so it must not be added to Go's poller.
	mounts, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open", err)
	}
	defer unix.Close(mounts)       //nolint:errcheck // it is read only
	ours, theirs, err := os.Pipe() // wakes poll when ctx ends
	if err != nil {
		return err
	}
	defer ours.Close()
	defer theirs.Close()
	stop := context.AfterFunc(ctx, func() { _, _ = theirs.Write([]byte{0}) })
	defer stop()
	for {
		exists, err := waitChange(path, mounts, int(ours.Fd()))
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case exists:
			return nil
		}
	}
}

// waitChange reports whether a path exists and, if not, waits until that may have changed.
func waitChange(path string, mounts, over int) (exists bool, err error) {
	made, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return false, os.NewSyscallError("inotify_init1", err)
	}
	defer unix.Close(made) //nolint:errcheck // it is read only
	above := filepath.Dir(path)
	dir := above
	for ; ; dir = filepath.Dir(dir) {
		_, err := unix.InotifyAddWatch(made, dir,
			unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_ONLYDIR)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.ENOENT) || dir == "/" || dir == "." {
			return false, &os.PathError{Op: "watch", Path: dir, Err: err}
		}
	}
	if _, err := os.Lstat(above); err == nil && dir != above {
		return false, nil // it has just been created
	}
	if _, err := os.Lstat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err == nil, err
	}
	fds := []unix.PollFd{{Fd: int32(made), Events: unix.POLLIN}, {Fd: int32(mounts), Events: unix.POLLPRI},
		{Fd: int32(over), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); !errors.Is(err, unix.EINTR) {
			return false, err
		}
	}
}
