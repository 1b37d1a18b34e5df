package tree

import (
	"cmp"
	"errors"
	"io/fs"
	"path"

	"golang.org/x/sys/unix"
)

// Close ends the use of a tree.
func (r *Root) Close() error { return r.dir.Close() }

// Name returns the path by which the tree was opened, for messages.
func (r *Root) Name() string { return r.dir.Name() }

// Fd returns the open directory, for calls that need one; it is valid until Close.
func (r *Root) Fd() int { return int(r.dir.Fd()) }

// open opens a path without leaving the tree.
func (r *Root) open(name string, flags int) (int, error) {
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC),
		Resolve: r.beyond | unix.RESOLVE_NO_MAGICLINKS,
	}
	const tries = 1000 // the kernel asks for another when something was renamed on the way
	for try := 0; ; try++ {
		fd, err := unix.Openat2(int(r.dir.Fd()), relative(name), &how)
		if (errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)) && try < tries {
			continue
		}
		return fd, err
	}
}

// relative returns a path from the top of the tree.
func relative(name string) string { return cmp.Or(path.Clean("/" + name)[1:], ".") }

func (r *Root) at(name string) string { return path.Join(r.Name(), path.Clean("/"+name)) }

// wrong says of an error where it was met.
func (r *Root) wrong(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: Shorten(r.at(name)), Err: err}
}
