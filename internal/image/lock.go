package image

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is how often a lock that somebody else has is tried again.
const lockPoll = 50 * time.Millisecond

// errHeld says that somebody else has the lock.
var errHeld = errors.New("somebody else has the lock")

// A lock is a file held by flock(2): the kernel lets go of it with the process, however that ends.
type lock struct{ file *os.File }

// tryLock takes a lock (unix.LOCK_SH or LOCK_EX) if it is free now, else it gives errHeld.
func tryLock(path string, how int) (*lock, error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, errHeld
			}
			return nil, &os.PathError{Op: "flock", Path: path, Err: err}
		}
		// Whoever had it may have removed the file in the meantime (GC does): a lock on a file without a name locks nothing.
		here, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, err
		}
		if named, err := os.Stat(path); err == nil && os.SameFile(here, named) {
			return &lock{f}, nil
		}
		f.Close()
	}
}

// takeLock waits for a lock; held is called once if somebody else has it.
func takeLock(ctx context.Context, path string, how int, held func()) (*lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		l, err := tryLock(path, how)
		if !errors.Is(err, errHeld) {
			return l, err
		}
		if first && held != nil {
			held()
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lockPoll):
		}
	}
}

func (l *lock) release() { l.file.Close() }
