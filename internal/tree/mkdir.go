package tree

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// MkdirAll creates a directory and its missing parents with the mode 0755 and the given owner. It
// follows links to directories inside the tree.
func (r *Root) MkdirAll(name string, uid, gid int) error {
	fd, err := maker{&r.topDir, uid, gid}.directory(name)
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

// Mkdir creates a directory with a mode in an existing directory. An existing directory of this
// name is no error.
func (r *Root) Mkdir(name string, mode uint32) error {
	dir, err := r.open(path.Dir(relative(name)), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return r.pathError("mkdir", name, err)
	}
	defer unix.Close(dir) //nolint:errcheck // it was only gone through
	err = unix.Mkdirat(dir, path.Base(relative(name)), mode)
	if errors.Is(err, unix.EEXIST) {
		var st *unix.Stat_t
		if st, err = r.Lstat(name); err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			err = unix.ENOTDIR
		}
	}
	return r.pathError("mkdir", name, err)
}

// A maker creates the missing directories on the way to a path of a tree, for an owner.
type maker struct {
	*topDir
	uid, gid int
}

// openParent opens the parent directory of a path, creating it if it is missing. It also returns the
// last part of the path.
func (m maker) openParent(name string) (dir int, base string, err error) {
	name = relative(name)
	if base = path.Base(name); base == "." {
		return 0, "", m.pathError("write", name, unix.EISDIR)
	}
	dir, err = m.directory(path.Dir(name))
	return dir, base, err
}

func (m maker) directory(name string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY
	fd, err := m.open(name, flags)
	if !errors.Is(err, unix.ENOENT) {
		return fd, m.pathError("open", name, err)
	}
	fd, err = m.open(".", flags)
	at := ""
	for part := range strings.SplitSeq(relative(name), "/") {
		if err != nil {
			break
		}
		at = path.Join(at, part)
		next, missing := m.open(at, flags)
		if errors.Is(missing, unix.ENOENT) {
			missing = m.mkdir(fd, part)
			if missing == nil {
				next, missing = m.open(at, flags)
			}
		}
		unix.Close(fd) //nolint:errcheck // it was only gone through
		if fd, err = next, missing; err != nil {
			return -1, m.pathError("mkdir", at, err)
		}
	}
	return fd, err
}

// MkdirAllNoFollow opens a directory of the tree as a mount point. It creates missing directories as
// MkdirAll does. No directory on the way may be a link, so that a process that writes to the tree
// cannot redirect the mount.
func (r *Root) MkdirAllNoFollow(name string, uid, gid int) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	at, err := unix.Openat(r.Fd(), ".", flags, 0)
	for part := range strings.SplitSeq(path.Clean("/" + name)[1:], "/") {
		if err != nil || part == "" {
			break
		}
		var next int
		next, err = unix.Openat(at, part, flags, 0)
		if errors.Is(err, unix.ENOENT) {
			made := maker{&r.topDir, uid, gid}.mkdir(at, part)
			if next, err = unix.Openat(at, part, flags, 0); err != nil && made != nil {
				err = made
			}
		}
		unix.Close(at) //nolint:errcheck // it was only gone through
		at = next
	}
	if err != nil {
		return nil, r.pathError("open", name, err)
	}
	return os.NewFile(uintptr(at), r.at(name)), nil
}

func (m maker) mkdir(dir int, name string) error {
	if err := unix.Mkdirat(dir, name, 0o755); err != nil {
		if errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("it is a link to a path that does not exist: %w", unix.ENOENT)
		}
		return err
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // it was only gone through
	if err := unix.Fchown(fd, m.uid, m.gid); err != nil {
		return err
	}
	return unix.Fchmod(fd, 0o755) // regardless of the umask
}
