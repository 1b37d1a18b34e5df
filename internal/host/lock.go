package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host/holders"
	"orrery/internal/host/waits"
	"orrery/internal/problem"
)

// A Lock is a file locked by flock(2). The lock belongs to the open file description, so it
// excludes goroutines as well as processes. The kernel releases it when its owner ends, however it
// ends.
type Lock struct {
	file  *os.File
	named bool   // the file contains its holder
	held  func() // stops counting this lock as held, or nil if it is not counted
}

// heldLocks counts the locks of this process for which another process may wait.
var heldLocks atomic.Int64

// HoldsLock reports whether this process holds a lock for which another process may wait, on this
// host or on another.
func HoldsLock() bool { return heldLocks.Load() > 0 }

// CountLock counts a lock until the function that it returns is called. Locks of TryLock are not
// counted, because no process waits for them.
func CountLock() (done func()) {
	heldLocks.Add(1)
	return sync.OnceFunc(func() { heldLocks.Add(-1) })
}

// A LockMode determines whether others may hold a lock at the same time.
type LockMode int

// The ways to hold a lock.
const (
	Exclusive LockMode = unix.LOCK_EX
	Shared    LockMode = unix.LOCK_SH
)

// ErrHeld means that another process or goroutine holds the lock.
var ErrHeld = errors.New("another process holds the lock")

// Flock locks an open file if it is free now, or returns ErrHeld. Closing the file releases the
// lock.
func Flock(f *os.File, how LockMode) error {
	for {
		switch err := unix.Flock(int(f.Fd()), int(how)|unix.LOCK_NB); {
		case err == nil:
			return nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrHeld
		case !errors.Is(err, unix.EINTR):
			return &os.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
	}
}

// MarkByte locks one byte of an open file, which may be beyond its end, to show that its user is alive. It
// never waits. The kernel removes the lock when the file is closed or its process ends. A file system without
// such locks is not an error: then ByteMarked returns true.
func MarkByte(f *os.File, at int64) {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: at, Len: 1}
	_ = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock)
}

// ByteMarked reports whether a user of the file has marked the byte and is alive, or true if the file system
// cannot tell.
func ByteMarked(f *os.File, at int64) bool {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: at, Len: 1}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock)
	return err != nil || lock.Type != unix.F_UNLCK
}

// TryLock takes the lock at path if it is free now, or returns ErrHeld.
func TryLock(path string, how LockMode) (*Lock, error) {
	for {
		f, err := openLockFunc(path)
		if err != nil {
			return nil, err
		}
		if err := Flock(f, how); err != nil {
			f.Close()
			return nil, err
		}
		// The former holder may have removed the file since it was opened. A lock on a file without
		// a name excludes no one.
		here, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, err
		}
		if named, err := os.Lstat(path); err == nil && os.SameFile(here, named) {
			return &Lock{file: f}, nil
		}
		f.Close()
	}
}

// tryLock is like TryLock, and reports if the disk does not answer. No process then holds what the
// caller waits for.
func tryLock(ctx context.Context, path string, how LockMode) (*Lock, error) {
	defer waits.ReportSlow(ctx, "still waiting for the disk of "+path)()
	return TryLock(path, how)
}

// WaitLock waits for the lock at path until ctx ends. After a second it reports the holder (package
// waits), with the name of what is locked, as in "the lock of …".
func WaitLock(ctx context.Context, path string, how LockMode, locked string) (l *Lock, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	err = waits.For(ctx, locked, func() (waits.Holder, error) {
		if l, err = tryLock(ctx, path, how); errors.Is(err, ErrHeld) {
			return func() string { return DescribeHolder(path) }, nil
		}
		return nil, err
	})
	if err != nil {
		return nil, err
	}
	l.held = CountLock()
	return l, nil
}

// IsLocked reports whether another process holds the lock at path exclusively.
func IsLocked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(Flock(f, Shared), ErrHeld)
}

// Release releases the lock.
func (l *Lock) Release() {
	if l.named {
		_ = l.file.Truncate(0)
	}
	l.file.Close()
	if l.held != nil {
		l.held()
	}
}

// openLockFunc is openLock. It is a variable, so that tests can change it.
var openLockFunc = openLock

// openLock opens a file that will be locked. Read access is enough to lock a file, so only the
// owner gets access, even if an earlier version of this program created the file.
func openLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(0o600); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// lockFile waits for a lock that is never held for long.
func lockFile(ctx context.Context, path, locked string) (unlock func(), err error) {
	l, err := WaitLock(ctx, path, Exclusive, locked)
	if err != nil {
		return nil, err
	}
	return l.Release, nil
}

// cleanupContext returns a context for the cleanup at the end of an operation. It is valid even if ctx
// has ended, but only for cleanupTimeout.
func cleanupContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
}

// cleanupTimeout limits the wait for a lock to clean something up that does no harm if it stays.
const cleanupTimeout = 5 * time.Second

// Holder describes the process that holds a lock.
type Holder struct {
	Who     string    `json:"who"`
	Pid     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Command string    `json:"command"`
}

// NewHolder returns a Holder for this process, which runs a command for the user who.
func NewHolder(who, command string) Holder {
	return Holder{Who: who, Pid: os.Getpid(), Since: time.Now(), Command: command}
}

// TakeLock takes the lock at path and writes the holder into it. If another process holds it, it
// returns a Locked problem that names that process.
func TakeLock(ctx context.Context, path string, h Holder) (l *Lock, err error) {
	began := time.Now()
	err = waits.For(ctx, "the lock "+path, func() (waits.Holder, error) {
		if l, err = tryLockMakingDir(ctx, path); errors.Is(err, ErrHeld) && time.Since(began) < deadHolderGrace &&
			isHolderDead(path) {
			return func() string { return DescribeHolder(path) }, nil
		}
		return nil, err
	})
	if errors.Is(err, ErrHeld) {
		return nil, problem.New(problem.Locked, "another run is at work here: %s", DescribeHolder(path)).At(path).
			Try("wait for it, or end that process")
	}
	if err != nil {
		return nil, err
	}
	l.named, l.held = true, CountLock()
	defer waits.ReportSlow(ctx, "still waiting for the disk of "+path)()
	if err := h.write(l.file); err != nil && !problem.DiskFull(err) {
		// On a full disk, others cannot see who holds the lock, but the user can work to make room.
		l.Release()
		return nil, err
	}
	return l, nil
}

// tryLockMakingDir takes a lock if it is free, and creates its directory. The holder of the lock may
// remove the directory with the lock, as when a twin expires.
func tryLockMakingDir(ctx context.Context, path string) (l *Lock, err error) {
	for range 100 {
		if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			l, err = tryLock(ctx, path, Exclusive)
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			// MkdirAll returns either error for a directory that is removed at the same time
			break
		}
	}
	return l, err
}

// TakeLockWithin is like TakeLock, but retries until the timeout. A process that only checks
// whether the lock is held holds it for a moment.
func TakeLockWithin(ctx context.Context, timeout time.Duration, path string, h Holder) (l *Lock, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not within %s", timeout))
	defer cancel()
	err = waits.For(ctx, "the lock "+path, func() (waits.Holder, error) {
		l, err = TakeLock(ctx, path, h)
		return waits.HolderOf(err)
	})
	return l, err
}

// deadHolderGrace is how long a lock may stay held after its owner was killed. A program that the owner
// was just about to start inherits the lock until its exec.
const deadHolderGrace = 10 * time.Second

// isHolderDead reports whether the process that a lock names as its holder has ended.
func isHolderDead(path string) bool {
	h, ok := readHolder(path)
	return ok && h.Pid > 0 && errors.Is(unix.Kill(h.Pid, 0), unix.ESRCH)
}

func readHolder(path string) (h Holder, ok bool) {
	h, err := ReadJSON[Holder](path)
	return h, err == nil
}

// write writes the holder into a lock.
func (h Holder) write(f *os.File) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(text, 0)
	return err
}

// DescribeHolder returns a description of who holds a lock: from the lock itself or, if it names no holder,
// from the kernel.
func DescribeHolder(path string) string {
	if h, ok := readHolder(path); ok {
		return fmt.Sprintf("%s runs %q (process %d) since %s", h.Who, h.Command, h.Pid,
			time.Since(h.Since).Round(time.Second))
	}
	f, err := os.Open(path)
	if err != nil {
		return holders.Describe(nil)
	}
	defer f.Close()
	return holders.Describe(holders.Of(f))
}
