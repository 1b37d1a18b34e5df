package journal

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// maxFileBytes is the size in bytes above which a journal is rotated when it is next opened. The last kept
// rotated files stay beside it.
var maxFileBytes int64 = 8 << 20

const maxRotated = 4

// rotatedPath returns the path of a rotated journal. The newest has number 1.
func rotatedPath(path string, n int) string { return fmt.Sprintf("%s.%d", path, n) }

// rotate renames the journal if it is too large, and opens the new one. A process that still has
// the former file open continues to write to it, and Read reads it. If the disk has no room for a
// new journal, the current one stays: it has its own reserved room.
func (j *Journal) rotate(path string) error {
	info, err := j.file.Stat()
	if err != nil || info.Size() < maxFileBytes {
		return err
	}
	if err := host.Flock(j.file, host.Exclusive); errors.Is(err, host.ErrHeld) {
		return nil // another process is rotating it now
	} else if err != nil {
		return err
	}
	defer j.file.Close() //nolint:errcheck // with it goes the lock; nothing was written
	now, err := os.Stat(path)
	if err == nil && os.SameFile(now, info) {
		err = replace(path)
	}
	if problem.DiskFull(err) {
		err = nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	j.file, err = open(path)
	return err
}

// replace puts an empty journal in the place of the one at path, which becomes the newest rotated
// file.
func replace(path string) error {
	fresh := path + ".new"
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, preallocatedBytes)
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = nil // the file system does not support it
	}
	if err := errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(fresh)
		return err
	}
	for n := maxRotated - 1; n > 0; n-- {
		if err := os.Rename(rotatedPath(path, n), rotatedPath(path, n+1)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(path, rotatedPath(path, 1)); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}
