package tree

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// A topDir is the open directory at the top of a tree. It resolves the paths below it and names
// them in errors.
type topDir struct {
	dir    *os.File
	beyond uint64 // how a link that leads out is resolved: RESOLVE_IN_ROOT or RESOLVE_BENEATH
}

// Name returns the path by which the tree was opened, for messages.
func (t *topDir) Name() string { return t.dir.Name() }

// Fd returns the open directory for calls that need a descriptor. It is valid until Close.
func (t *topDir) Fd() int { return int(t.dir.Fd()) }

// open opens a path without leaving the tree.
func (t *topDir) open(name string, flags int) (int, error) {
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC),
		Resolve: t.beyond | unix.RESOLVE_NO_MAGICLINKS,
	}
	const tries = 1000 // the kernel returns EAGAIN when something on the way was renamed
	for try := 0; ; try++ {
		fd, err := unix.Openat2(int(t.dir.Fd()), relative(name), &how)
		if (errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)) && try < tries {
			continue
		}
		return fd, err
	}
}

func (t *topDir) stat(name string, flag int) (*unix.Stat_t, error) {
	fd, err := t.open(name, unix.O_PATH|flag)
	if err != nil {
		return nil, t.pathError("stat", name, err)
	}
	defer unix.Close(fd) //nolint:errcheck // it was only looked at
	st := &unix.Stat_t{}
	return st, t.pathError("stat", name, unix.Fstat(fd, st))
}

// relative returns a path relative to the top of the tree.
func relative(name string) string { return cmp.Or(path.Clean("/" + name)[1:], ".") }

func (t *topDir) at(name string) string { return path.Join(t.Name(), path.Clean("/"+name)) }

// pathError adds the path to an error.
func (t *topDir) pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: DisplayPath(t.at(name)), Err: err}
}
