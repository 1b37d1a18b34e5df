package problem

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// OfWriting returns the kind of an error that was met in writing: Unable if there was no room, else Failed.
func OfWriting(err error) Kind {
	if DiskFull(err) {
		return Unable
	}
	return Failed
}

// DiskFull reports whether an error is that of a disk without room, or of a user who has had his share of it.
func DiskFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// Reason returns why an operation on a file failed, without the operation and the path, which the problem
// names already.
func Reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
