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

// An Amender changes a tree, path by path, as a peer requests. No other process may change or enter
// the tree meanwhile. Whatever the peer requests, the Amender follows no link and changes nothing
// outside of the tree. The only device it creates is an overlayfs whiteout.
type Amender struct {
	root  *Root
	dir   string // the path of the open directory, or "" if none is open
	fd    int
	lacks func(attr string)
}

// Amend returns an Amender for a tree. It calls lacks for attributes that the file system does not
// support.
func Amend(root *Root, lacks func(attr string)) *Amender {
	return &Amender{root: root, fd: -1, lacks: lacks}
}

// Close closes the Amender.
func (a *Amender) Close() {
	if a.fd >= 0 {
		unix.Close(a.fd) //nolint:errcheck // it was only gone through
	}
	a.fd, a.dir = -1, ""
}

func wrong(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: Shorten(name), Err: err}
}

// at opens the parent directory of a path and returns its last part.
func (a *Amender) at(name string) (dir int, base string, err error) {
	if !Legal(name) {
		return -1, "", fmt.Errorf("no path leads there from the top of a tree: %w", unix.EINVAL)
	}
	above := path.Dir(name)
	if a.fd < 0 || a.dir != above {
		a.Close()
		var names []string
		if above != "." {
			names = strings.Split(above, "/")
		}
		if len(names) > Ample.Depth {
			return -1, "", ErrTooLarge
		}
		if a.fd, err = a.root.OpenDown(names); err != nil {
			return -1, "", err
		}
		a.dir = above
	}
	return a.fd, path.Base(name), nil
}

// Enter creates a directory unless it exists, and removes its attributes so that new files in it do
// not inherit them. Leave sets the final attributes.
func (a *Amender) Enter(name string) error {
	if name == "." {
		return wrong("enter", name, bare(a.root.Fd(), true))
	}
	dir, base, err := a.at(name)
	if err != nil {
		return wrong("enter", name, err)
	}
	if st, err := StatEntry(dir, base); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		if err := RemoveAllAt(dir, base); err != nil {
			return wrong("remove", name, err)
		}
		return wrong("make", name, unix.Mkdirat(dir, base, 0o700))
	}
	fd, err := unix.Openat(dir, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return wrong("open", name, err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	return wrong("enter", name, bare(fd, true))
}

// bare removes all extended attributes of an open file. It makes a directory inaccessible to other
// users.
func bare(fd int, directory bool) error {
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

// Leave sets the owner, mode, attributes and times of a directory that was entered.
func (a *Amender) Leave(m *Made) error {
	if m.Path == "." {
		return wrong("dress", ".", m.Dress(a.root.Fd(), ".", a.failed))
	}
	dir, base, err := a.at(m.Path)
	if err == nil {
		var st unix.Stat_t
		if st, err = StatEntry(dir, base); err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			err = unix.ENOTDIR
		}
	}
	if err == nil {
		err = m.Dress(dir, base, a.failed)
	}
	return wrong("dress", m.Path, err)
}

func (a *Amender) failed(attr string, err error) error {
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EPERM) && os.Geteuid() != 0 {
		a.lacks(attr)
		return nil
	}
	return fmt.Errorf("attribute %q: %w", Shorten(attr), err)
}

// File opens a regular file to write its content: a new one or, if patch is set, the existing one
// without its attributes. Dress sets the final attributes.
func (a *Amender) File(name string, patch bool) (*os.File, error) {
	dir, base, err := a.at(name)
	if err != nil {
		return nil, wrong("make", name, err)
	}
	flags := unix.O_RDWR | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	if !patch {
		if err := RemoveAllAt(dir, base); err != nil {
			return nil, wrong("remove", name, err)
		}
		flags |= unix.O_CREAT | unix.O_EXCL
	}
	fd, err := unix.Openat(dir, base, flags, 0o600)
	if err == nil {
		if _, err = regular(fd); err == nil {
			err = bare(fd, false)
		}
		if err != nil {
			unix.Close(fd) //nolint:errcheck // nothing was written to it
		}
	}
	if err != nil {
		return nil, wrong("make", name, err)
	}
	return os.NewFile(uintptr(fd), Shorten(name)), nil
}

// Dress sets the owner, mode, attributes and times of a file.
func (a *Amender) Dress(m *Made) error {
	dir, base, err := a.at(m.Path)
	if err == nil {
		err = m.Dress(dir, base, a.failed)
	}
	return wrong("dress", m.Path, err)
}

// Make creates an entry that is neither a directory nor a regular file: a symbolic link, a named
// pipe or an overlayfs whiteout.
func (a *Amender) Make(m *Made) error {
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
		err = m.Dress(dir, base, a.failed)
	}
	return wrong("make", m.Path, err)
}

// Link adds another name to a file, which must not be a directory.
func (a *Amender) Link(same, name string) error {
	dir, base, err := a.at(name)
	if err == nil {
		err = RemoveAllAt(dir, base)
	}
	if err == nil && !Legal(same) {
		err = unix.EINVAL
	}
	if err != nil {
		return wrong("link", name, err)
	}
	parts := strings.Split(same, "/")
	from, err := a.root.OpenDown(parts[:len(parts)-1])
	if err != nil {
		return wrong("link", name, err)
	}
	defer unix.Close(from) //nolint:errcheck // it was only gone through
	return wrong("link", name, unix.Linkat(from, parts[len(parts)-1], dir, base, 0))
}

// Remove removes a path and everything below it.
func (a *Amender) Remove(name string) error {
	dir, base, err := a.at(name)
	if err == nil {
		err = RemoveAllAt(dir, base)
	}
	if a.dir == name || strings.HasPrefix(a.dir, name+"/") {
		a.Close()
	}
	return wrong("remove", name, err)
}
