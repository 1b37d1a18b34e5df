package problem

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// KindOfWriteError returns the kind of a write error: Unable if the disk or quota is full, otherwise
// Failed.
func KindOfWriteError(err error) Kind {
	if DiskFull(err) {
		return Unable
	}
	return Failed
}

// DiskFull reports whether an error means that the disk is full or a quota is exceeded.
func DiskFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// PathErrorCause returns why a file operation failed, without the operation and the path, which the problem
// already names.
func PathErrorCause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
