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

// A Lock is a file held by flock(2). It belongs to the opened file, so it keeps apart goroutines as
// well as processes, and the kernel gives it back when its owner ends, however it ends.
type Lock struct {
	file  *os.File
	named bool   // it says who has it
	held  func() // says that this process holds it no more; nil: nobody counts it
}

// holding counts the locks of this process for which somebody may wait.
var holding atomic.Int64

// Holding reports whether this process holds a lock for which somebody may wait, here or on another host.
func Holding() bool { return holding.Load() > 0 }

// CountHeld counts a lock, until the function that it returns is called. Those of TryLock are not
// counted: nobody waits for them.
func CountHeld() (done func()) {
	holding.Add(1)
	return sync.OnceFunc(func() { holding.Add(-1) })
}

// A Sharing says whether others may have a lock at the same time.
type Sharing int

// What a lock is taken for.
const (
	Alone  Sharing = unix.LOCK_EX
	Shared Sharing = unix.LOCK_SH
)

// ErrHeld says that somebody else has the lock.
var ErrHeld = errors.New("somebody else has the lock")

// Flock locks an open file if it is free now; closing the file gives it back.
func Flock(f *os.File, how Sharing) error {
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

// TryLock takes the lock at path if it is free now, else it returns ErrHeld.
func TryLock(path string, how Sharing) (*Lock, error) {
	for {
		f, err := opening(path)
		if err != nil {
			return nil, err
		}
		if err := Flock(f, how); err != nil {
			f.Close()
			return nil, err
		}
		// Whoever had it may have removed the file in the meantime: a lock on a file without a name locks nothing.
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

// tryLock is TryLock, and tells if the disk does not answer: no process then has what is waited for.
func tryLock(ctx context.Context, path string, how Sharing) (*Lock, error) {
	defer waits.Slow(ctx, "still waiting for the disk of "+path)()
	return TryLock(path, how)
}

// WaitLock waits for the lock at path. Whoever has it is told after a second (package waits), with
// what is locked, as in "the lock of …". When ctx ends, so does the wait.
func WaitLock(ctx context.Context, path string, how Sharing, locked string) (l *Lock, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	err = waits.For(ctx, locked, func() (waits.Held, error) {
		if l, err = tryLock(ctx, path, how); errors.Is(err, ErrHeld) {
			return func() string { return HeldBy(path) }, nil
		}
		return nil, err
	})
	if err != nil {
		return nil, err
	}
	l.held = CountHeld()
	return l, nil
}

// Held reports whether somebody has the lock at path for himself.
func Held(path string) bool {
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

// opening is openLock, and a variable, so that tests can change it.
var opening = openLock

// openLock opens a file that is to be locked. Whoever can open a file can lock it, to read it is
// enough; so nobody but its owner can, also if an earlier version of this program made it.
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

// lockFile waits for a lock that nobody holds for long.
func lockFile(ctx context.Context, path, locked string) (unlock func(), err error) {
	l, err := WaitLock(ctx, path, Alone, locked)
	if err != nil {
		return nil, err
	}
	return l.Release, nil
}

// afterwards returns a context in which what is at its end is cleared away, although ctx may be
// over; but nobody waits for long.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), clearTimeout)
}

// clearTimeout is how long one waits for a lock to clear something away that does no harm if it stays.
const clearTimeout = 5 * time.Second

// Holder is who holds a lock.
type Holder struct {
	Who     string    `json:"who"`
	Pid     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Command string    `json:"command"`
}

// NewHolder is this process, which runs a command for somebody.
func NewHolder(who, command string) Holder {
	return Holder{Who: who, Pid: os.Getpid(), Since: time.Now(), Command: command}
}

// TakeLock takes the lock at path, which then says who has it, or says who does.
func TakeLock(ctx context.Context, path string, h Holder) (l *Lock, err error) {
	began := time.Now()
	err = waits.For(ctx, "the lock "+path, func() (waits.Held, error) {
		if l, err = tryLockIn(ctx, path); errors.Is(err, ErrHeld) && time.Since(began) < ofTheDead && dead(path) {
			return func() string { return HeldBy(path) }, nil
		}
		return nil, err
	})
	if errors.Is(err, ErrHeld) {
		return nil, problem.New(problem.Locked, "another run is at work here: %s", HeldBy(path)).At(path).
			Try("wait for it, or end that process")
	}
	if err != nil {
		return nil, err
	}
	l.named, l.held = true, CountHeld()
	defer waits.Slow(ctx, "still waiting for the disk of "+path)()
	if err := h.write(l.file); err != nil && !problem.DiskFull(err) {
		// on a full disk nobody is told who it is, but whoever makes room can be at work
		l.Release()
		return nil, err
	}
	return l, nil
}

// tryLockIn takes a lock if it is free, and makes its directory, which whoever has the lock may
// remove with it, as when a twin expires.
func tryLockIn(ctx context.Context, path string) (l *Lock, err error) {
	for range 100 {
		if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			l, err = tryLock(ctx, path, Alone)
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			// MkdirAll says either of a directory that is removed meanwhile
			break
		}
	}
	return l, err
}

// TakeLockWithin is TakeLock for a lock that is free again soon: somebody who asks whether it is
// held has it for a moment.
func TakeLockWithin(ctx context.Context, timeout time.Duration, path string, h Holder) (l *Lock, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not within %s", timeout))
	defer cancel()
	err = waits.For(ctx, "the lock "+path, func() (waits.Held, error) {
		l, err = TakeLock(ctx, path, h)
		return waits.Locked(err)
	})
	return l, err
}

// ofTheDead is how long a lock may stay taken whose owner was killed: a program that it was just
// about to start has the lock with it until it has begun.
const ofTheDead = 10 * time.Second

// dead reports whether the process that a lock names as its owner is no more.
func dead(path string) bool {
	h, ok := holderOf(path)
	return ok && h.Pid > 0 && errors.Is(unix.Kill(h.Pid, 0), unix.ESRCH)
}

func holderOf(path string) (h Holder, ok bool) {
	h, err := ReadJSON[Holder](path)
	return h, err == nil
}

// write says in a lock who has it.
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

// HeldBy says in words who has a lock: as the lock itself says, else as the kernel does.
func HeldBy(path string) string {
	if h, ok := holderOf(path); ok {
		return fmt.Sprintf("%s runs %q (process %d) since %s", h.Who, h.Command, h.Pid,
			time.Since(h.Since).Round(time.Second))
	}
	f, err := os.Open(path)
	if err != nil {
		return holders.Words(nil)
	}
	defer f.Close()
	return holders.Words(holders.Of(f))
}
