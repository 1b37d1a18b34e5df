package tree

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

// Remove removes a file, a link or an empty directory. A missing path is no error.
func (r *Root) Remove(name string) error { return r.remove(name, unlink) }

// RemoveAll removes a path of the tree and everything below it, at any depth. A missing path is no
// error.
func (r *Root) RemoveAll(name string) error { return r.remove(name, removeAll) }

// remove opens the parent directory of a path and calls from to remove the last part.
func (r *Root) remove(name string, from func(dir int, name string) error) error {
	dir, err := r.open(path.Dir(relative(name)), unix.O_PATH|unix.O_DIRECTORY)
	if err == nil {
		defer unix.Close(dir) //nolint:errcheck // it was only gone through
		err = from(dir, path.Base(relative(name)))
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return r.pathError("remove", name, err)
}

// RemoveAll removes a file or directory and everything below it, at any depth. The path is trusted,
// but its last part is not followed. A missing path is no error.
func RemoveAll(at string) error {
	dir, err := unix.Open(path.Dir(at), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(dir) //nolint:errcheck // it was only gone through
		err = removeAll(dir, path.Base(at))
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "remove", Path: at, Err: err}
	}
	return nil
}

// removeAll removes an entry of an open directory and everything below it.
func removeAll(dir int, name string) error {
	err := unlink(dir, name)
	if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
		return err
	}
	top, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	e := remover{top: os.NewFile(uintptr(top), name)}
	defer e.top.Close()
	if err := e.directory(int(e.top.Fd()), 0); err != nil {
		return err
	}
	return unlink(dir, name)
}

// A remover empties a directory of any depth with few open directories. It moves directories that
// are too deep to the top and empties them there.
type remover struct {
	top   *os.File
	moved int
}

const maxOpenDepth = 64

func (e *remover) directory(dir, depth int) error {
	for {
		again, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(again), "directory")
		some, err := f.Readdirnames(1 << 14)
		f.Close()
		if len(some) == 0 {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		for _, name := range some {
			if err := e.entry(dir, name, depth); err != nil {
				return err
			}
		}
	}
}

func (e *remover) entry(dir int, name string, depth int) error {
	err := unlink(dir, name)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
		return err
	}
	if depth >= maxOpenDepth {
		e.moved++
		return unix.Renameat(dir, name, int(e.top.Fd()), newTemporary()+strconv.Itoa(e.moved))
	}
	inner, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(inner) //nolint:errcheck // it was only gone through
	if err := e.directory(inner, depth+1); err != nil {
		return err
	}
	return unlink(dir, name)
}

// unlink removes a file or an empty directory, even one that is marked as immutable (chattr(1)).
func unlink(dir int, name string) error {
	err := unlinkEither(dir, name)
	if errors.Is(err, unix.EPERM) && (clearImmutable(dir, ".") || clearImmutable(dir, name)) {
		clearImmutable(dir, name)
		err = unlinkEither(dir, name)
	}
	return err
}

func unlinkEither(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
		if as := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); !errors.Is(as, unix.ENOTDIR) {
			return as
		}
	}
	return err
}

// clearImmutable removes the flags "immutable" and "append only" from a file or directory. It reports
// whether either was set.
func clearImmutable(dir int, name string) bool {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd) //nolint:errcheck // it was only marked
	marks, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	const fixed = 0x10 | 0x20 // FS_IMMUTABLE_FL, FS_APPEND_FL of linux/fs.h
	return err == nil && marks&fixed != 0 && unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(marks&^fixed)) == nil
}

// RemoveAllAt removes an entry of an open directory and everything below it, at any depth. A
// missing entry is no error.
func RemoveAllAt(dir int, name string) error {
	if err := removeAll(dir, name); !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}
