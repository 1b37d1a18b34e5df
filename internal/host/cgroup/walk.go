package cgroup

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A groupDir is a control group in one hierarchy.
type groupDir struct{ root, name string }

// walk visits the group and all groups below it, the deepest first. The function visit gets the
// parent directory and the group's name in it. A group that disappears during the walk is not an
// error.
//
// The root user of a node can nest groups so deep that a path would be too long. A process could
// not have all these directories open either. So walk opens each directory relative to the last
// one, and has one open at a time.
func (b groupDir) walk(ctx context.Context, visit func(above int, name string) error) error {
	w := &walker{visit: visit}
	top, name := filepath.Split(filepath.Join(b.root, b.name))
	var err error
	if w.at, err = unix.Open(top, dirFlags, 0); err != nil {
		return ignoreNotExist(os.NewSyscallError("open", err))
	}
	defer func() { unix.Close(w.at) }() //nolint:errcheck // nothing was written to it
	return w.group(ctx, name)
}

type walker struct {
	at    int // descriptor of the current directory
	visit func(above int, name string) error
}

const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// group visits one group, after the groups below it.
func (w *walker) group(ctx context.Context, name string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := w.enter(name); err != nil {
		return ignoreNotExist(err)
	}
	below, err := groupsIn(w.at)
	if err != nil {
		return err
	}
	for _, inside := range below {
		if err := w.group(ctx, inside); err != nil {
			return err
		}
	}
	if err := w.enter(".."); err != nil {
		return err
	}
	return ignoreNotExist(w.visit(w.at, name))
}

func (w *walker) enter(name string) error {
	to, err := unix.Openat(w.at, name, dirFlags, 0)
	if err != nil {
		return os.NewSyscallError("openat", err)
	}
	unix.Close(w.at) //nolint:errcheck // nothing was written to it
	w.at = to
	return nil
}

// groupsIn returns the names of the groups in a directory.
func groupsIn(dir int) (all []string, err error) {
	own, err := unix.Openat(dir, ".", dirFlags, 0)
	if err != nil {
		return nil, ignoreNotExist(os.NewSyscallError("openat", err))
	}
	f := os.NewFile(uintptr(own), "control group")
	defer f.Close()
	entries, err := f.ReadDir(-1)
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, e.Name())
		}
	}
	return all, ignoreNotExist(err)
}

// ignoreNotExist drops errors that mean that a group, or its hierarchy, no longer exists.
func ignoreNotExist(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// readIn reads a file of a group that is being visited.
func readIn(above int, name, file string) ([]byte, error) {
	f, err := openIn(above, name, file, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// writeIn writes a file of a group that is being visited.
func writeIn(above int, name, file, value string) error {
	f, err := openIn(above, name, file, unix.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

func openIn(above int, name, file string, how int) (*os.File, error) {
	fd, err := unix.Openat(above, name+"/"+file, how|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: file, Err: err}
	}
	return os.NewFile(uintptr(fd), file), nil
}
