package network

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// lockPath is locked while networks are changed. A lock of flock(2) belongs to the opened file, so it keeps apart goroutines
// as well as processes, and it goes with the process, however that ends.
const lockPath = "/run/orrery/network.lock"

// lock waits until nobody else on this host changes networks.
func lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(lockPath), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(lockPath, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, problem.New(problem.Unable, "networks can be changed by root only").Because(err).Try("run orrery as root")
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			f.Close()
			return nil, &os.PathError{Op: "flock", Path: lockPath, Err: err}
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(2 * time.Millisecond):
		}
	}
}
