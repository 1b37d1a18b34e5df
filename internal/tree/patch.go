package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// A Patcher changes a tree, path by path, as a peer requests. No other process may change or enter
// the tree meanwhile. Whatever the peer requests, the Patcher follows no link and changes nothing
// outside of the tree. The only device it creates is an overlayfs whiteout.
type Patcher struct {
	root  *Root
	dir   string // the path of the open directory, or "" if none is open
	fd    int
	lacks func(attr string)
}

// NewPatcher returns a Patcher for a tree. It calls lacks for attributes that the file system does not
// support.
func NewPatcher(root *Root, lacks func(attr string)) *Patcher {
	return &Patcher{root: root, fd: -1, lacks: lacks}
}

// Close closes the Patcher.
func (a *Patcher) Close() {
	if a.fd >= 0 {
		unix.Close(a.fd) //nolint:errcheck // it was only gone through
	}
	a.fd, a.dir = -1, ""
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: DisplayPath(name), Err: err}
}

// at opens the parent directory of a path and returns its last part.
func (a *Patcher) at(name string) (dir int, base string, err error) {
	if !ValidPath(name) {
		return -1, "", fmt.Errorf("invalid path in a tree: %w", unix.EINVAL)
	}
	above := path.Dir(name)
	if a.fd < 0 || a.dir != above {
		a.Close()
		var names []string
		if above != "." {
			names = strings.Split(above, "/")
		}
		if len(names) > DefaultBounds.Depth {
			return -1, "", ErrTooLarge
		}
		if a.fd, err = a.root.OpenNoFollow(names); err != nil {
			return -1, "", err
		}
		a.dir = above
	}
	return a.fd, path.Base(name), nil
}

// EnterDir creates a directory unless it exists, and removes its attributes so that new files in it do
// not inherit them. Leave sets the final attributes.
func (a *Patcher) EnterDir(name string) error {
	if name == "." {
		return pathError("enter", name, clearAttributes(a.root.Fd(), true))
	}
	dir, base, err := a.at(name)
	if err != nil {
		return pathError("enter", name, err)
	}
	if st, err := StatEntry(dir, base); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		if err := RemoveAllAt(dir, base); err != nil {
			return pathError("remove", name, err)
		}
		return pathError("make", name, unix.Mkdirat(dir, base, 0o700))
	}
	fd, err := unix.Openat(dir, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return pathError("open", name, err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	return pathError("enter", name, clearAttributes(fd, true))
}

// clearAttributes removes all extended attributes of an open file. It makes a directory inaccessible to other
// users.
func clearAttributes(fd int, directory bool) error {
	if directory {
		if err := unix.Fchmod(fd, 0o700); err != nil {
			return err
		}
	}
	attrs, err := FileAttributes(fd)
	if err != nil {
		return err
	}
	for attr := range attrs {
		if err := unix.Fremovexattr(fd, attr); err != nil && !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.EPERM) &&
			!errors.Is(err, unix.ENOTSUP) {
			return err
		}
	}
	return nil
}

// LeaveDir sets the owner, mode, attributes and times of a directory that was entered.
func (a *Patcher) LeaveDir(m *Header) error {
	if m.Path == "." {
		return pathError("dress", ".", m.SetMetadata(a.root.Fd(), ".", a.failed))
	}
	dir, base, err := a.at(m.Path)
	if err == nil {
		var st unix.Stat_t
		if st, err = StatEntry(dir, base); err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			err = unix.ENOTDIR
		}
	}
	if err == nil {
		err = m.SetMetadata(dir, base, a.failed)
	}
	return pathError("dress", m.Path, err)
}

func (a *Patcher) failed(attr string, err error) error {
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EPERM) && os.Geteuid() != 0 {
		a.lacks(attr)
		return nil
	}
	return fmt.Errorf("attribute %q: %w", DisplayPath(attr), err)
}

// OpenFile opens a regular file to write its content: a new one or, if patch is set, the existing one
// without its attributes. Dress sets the final attributes.
func (a *Patcher) OpenFile(name string, patch bool) (*os.File, error) {
	dir, base, err := a.at(name)
	if err != nil {
		return nil, pathError("make", name, err)
	}
	flags := unix.O_RDWR | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	if !patch {
		if err := RemoveAllAt(dir, base); err != nil {
			return nil, pathError("remove", name, err)
		}
		flags |= unix.O_CREAT | unix.O_EXCL
	}
	fd, err := unix.Openat(dir, base, flags, 0o600)
	if patch && errors.Is(err, unix.EACCES) { // it is read-only, and this user is not root
		if err = makeWritable(dir, base); err == nil {
			fd, err = unix.Openat(dir, base, flags, 0o600)
		}
	}
	if err == nil {
		if _, err = regular(fd); err == nil {
			err = clearAttributes(fd, false)
		}
		if err != nil {
			unix.Close(fd) //nolint:errcheck // nothing was written to it
		}
	}
	if err != nil {
		return nil, pathError("make", name, err)
	}
	return os.NewFile(uintptr(fd), DisplayPath(name)), nil
}

// makeWritable lets the owner of a regular file write to it.
func makeWritable(dir int, base string) error {
	fd, err := unix.Openat(dir, base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	if _, err := regular(fd); err != nil {
		return err
	}
	return unix.Fchmod(fd, 0o600)
}

// SetMetadata sets the owner, mode, attributes and times of a file.
func (a *Patcher) SetMetadata(m *Header) error {
	dir, base, err := a.at(m.Path)
	if err == nil {
		err = m.SetMetadata(dir, base, a.failed)
	}
	return pathError("dress", m.Path, err)
}

// Create creates an entry that is neither a directory nor a regular file: a symbolic link, a named
// pipe or an overlayfs whiteout.
func (a *Patcher) Create(m *Header) error {
	dir, base, err := a.at(m.Path)
	if err == nil {
		err = RemoveAllAt(dir, base)
	}
	if err == nil {
		switch m.kind() {
		case unix.S_IFLNK:
			err = unix.Symlinkat(m.Link, dir, base)
		case unix.S_IFIFO, unix.S_IFCHR:
			err = unix.Mknodat(dir, base, m.kind()|0o600, 0)
		default:
			err = fmt.Errorf("it is %s: %w", Kind(m.Mode), ErrNotRegular)
		}
	}
	if err == nil {
		err = m.SetMetadata(dir, base, a.failed)
	}
	return pathError("make", m.Path, err)
}

// Link adds another name to a file, which must not be a directory.
func (a *Patcher) Link(same, name string) error {
	dir, base, err := a.at(name)
	if err == nil {
		err = RemoveAllAt(dir, base)
	}
	if err == nil && !ValidPath(same) {
		err = unix.EINVAL
	}
	if err != nil {
		return pathError("link", name, err)
	}
	parts := strings.Split(same, "/")
	from, err := a.root.OpenNoFollow(parts[:len(parts)-1])
	if err != nil {
		return pathError("link", name, err)
	}
	defer unix.Close(from) //nolint:errcheck // it was only gone through
	return pathError("link", name, unix.Linkat(from, parts[len(parts)-1], dir, base, 0))
}

// Remove removes a path and everything below it.
func (a *Patcher) Remove(name string) error {
	dir, base, err := a.at(name)
	if err == nil {
		err = RemoveAllAt(dir, base)
	}
	if a.dir == name || strings.HasPrefix(a.dir, name+"/") {
		a.Close()
	}
	return pathError("remove", name, err)
}
