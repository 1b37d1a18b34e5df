package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// A Lock is held by whoever changes a site on a host; it names its owner. The kernel gives it back when its owner ends, however it ends.
type Lock struct{ file *os.File }

// Holder is who holds a lock.
type Holder struct {
	Who     string    `json:"who"`
	Pid     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Command string    `json:"command"`
}

// TakeLock takes the lock at path, or says who has it.
func TakeLock(path string, h Holder) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := openLock(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, err
		}
		return nil, problem.New(problem.Locked, "another run is at work here: %s", readHolder(f)).At(path).
			Try("wait for it, or end that process")
	}
	if err := h.write(f); err != nil && !problem.DiskFull(err) { // on a full disk nobody is told who it is, but whoever makes room can be at work
		f.Close()
		return nil, err
	}
	return &Lock{f}, nil
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

// openLock opens a file that is to be locked. Whoever can open a file can lock it, to read it is enough; so nobody but its owner can,
// also if an earlier version of this program made it.
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

// lockFile waits until nobody else has locked a file (flock(2)). To unlock closes it.
func lockFile(path string) (unlock func(), err error) {
	f, err := openLock(path)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != unix.EINTR {
			f.Close()
			return nil, &os.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
	}
}

// WaitLock takes a lock that nobody holds for long, and waits until it is free.
func WaitLock(path string) (unlock func(), err error) { return lockFile(path) }

// Held reports whether somebody holds the lock at path.
func Held(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

func readHolder(f *os.File) string {
	text := make([]byte, 4096)
	n, _ := f.ReadAt(text, 0)
	var h Holder
	if json.Unmarshal(text[:n], &h) != nil {
		return "by an unknown owner"
	}
	return fmt.Sprintf("%s runs %q (process %d) since %s", h.Who, h.Command, h.Pid, time.Since(h.Since).Round(time.Second))
}

// Release gives the lock back.
func (l *Lock) Release() {
	_ = l.file.Truncate(0)
	l.file.Close()
}
