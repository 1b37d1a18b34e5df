package tree

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Made is what is to be at a path of a tree that is built.
type Made struct {
	Path     string // from the top; "." is the top itself
	Mode     uint32 // with the type, as stat(2) gives it
	Uid, Gid int
	Modified time.Time
	Accessed time.Time         // the zero time: now
	Link     string            // what a symbolic link says
	Same     string            // the path of the file that this is another name of; all else is that file's
	Attrs    map[string][]byte // extended attributes
}

func (m *Made) kind() uint32 { return m.Mode & unix.S_IFMT }

// A Builder makes a tree, path by path, in the order in which Walk visits them: a directory before
// what is in it, names in order. So no path comes twice, and each is made in a directory that the
// builder itself has made and holds open: no link is ever followed, whatever the paths say.
type Builder struct {
	top   string
	above []filling // the directories that the last path is in, the top first
	last  string
	lacks func(attr string)
}

// A filling is a directory that is being filled. It is given what it is to be when all is in it:
// what is put into one changes its time, and its ACL would be that of what is put into it.
type filling struct {
	fd   int
	made Made
}

// Build begins a tree in a directory that is not there yet. The path to it is trusted. Lacks is
// told of attributes that the file system does not take.
func Build(top string, lacks func(attr string)) (*Builder, error) {
	if err := os.Mkdir(top, 0o700); err != nil {
		return nil, err
	}
	fd, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: top, Err: err}
	}
	return &Builder{top: top, above: []filling{{fd: fd}}, lacks: lacks}, nil
}

// ErrOrder is the cause of an error about paths that do not come in the order of Walk.
var ErrOrder = errors.New("it is out of order")

// Add makes the next path. Fill writes the content of a regular file.
func (b *Builder) Add(m *Made, fill func(*os.File) error) error {
	if err := b.add(m, fill); err != nil {
		return &fs.PathError{Op: "make", Path: Shorten(path.Join(b.top, m.Path)), Err: err}
	}
	return nil
}

func (b *Builder) add(m *Made, fill func(*os.File) error) error {
	if b.last == "" {
		if m.Path != "." || m.kind() != unix.S_IFDIR {
			return fmt.Errorf("a tree begins with its top: %w", ErrOrder)
		}
		b.last, b.above[0].made = ".", *m
		return nil
	}
	if err := b.enter(m.Path); err != nil {
		return err
	}
	dir, name := b.above[len(b.above)-1].fd, path.Base(m.Path)
	if m.Same != "" {
		return b.link(m.Same, dir, name)
	}
	switch m.kind() {
	case unix.S_IFDIR:
		return b.mkdir(dir, name, m)
	case unix.S_IFREG:
		return b.file(dir, name, m, fill)
	case unix.S_IFLNK:
		if err := unix.Symlinkat(m.Link, dir, name); err != nil {
			return err
		}
	case unix.S_IFIFO, unix.S_IFCHR: // the only device that can be made is 0:0, overlayfs's mark that hides what is below
		if err := unix.Mknodat(dir, name, m.kind()|0o600, 0); err != nil {
			return err
		}
	default:
		return fmt.Errorf("it is %s: %w", Kind(m.Mode), ErrNotRegular)
	}
	return b.dress(dir, name, m)
}

// Adopt makes the next path another name of a file that is there already, in a tree of our own; it
// becomes what is said. Nobody else writes to it.
func (b *Builder) Adopt(m *Made, from *Root, name string) error {
	err := b.enter(m.Path)
	if err == nil {
		dir, base := b.above[len(b.above)-1].fd, path.Base(m.Path)
		if err = unix.Linkat(from.Fd(), name, dir, base, 0); err == nil {
			err = b.dress(dir, base, m)
		}
	}
	if err != nil {
		return &fs.PathError{Op: "make", Path: Shorten(path.Join(b.top, m.Path)), Err: err}
	}
	return nil
}

// enter leaves the directories in which a path is not. What is then left must be the one in which it is.
func (b *Builder) enter(name string) error {
	if !Legal(name) {
		return fmt.Errorf("no path leads there from the top of a tree: %w", unix.EINVAL)
	}
	if !Before(b.last, name) {
		return ErrOrder
	}
	dir := path.Dir(name)
	for len(b.above) > 1 && b.above[len(b.above)-1].made.Path != dir &&
		!strings.HasPrefix(dir, b.above[len(b.above)-1].made.Path+"/") {
		if err := b.leave(); err != nil {
			return err
		}
	}
	if b.above[len(b.above)-1].made.Path != dir {
		return fmt.Errorf("it is in no directory: %w", ErrOrder)
	}
	b.last = name
	return nil
}

// Legal tells a path below the top of a tree, in the one way in which it is written.
func Legal(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || len(part) > unix.NAME_MAX || strings.Contains(part, "\x00") {
			return false
		}
	}
	return true
}

// Before reports whether Walk comes to one path before it comes to another.
func Before(a, b string) bool {
	if a == "." {
		return true
	}
	for {
		first, resta, morea := strings.Cut(a, "/")
		other, restb, moreb := strings.Cut(b, "/")
		if first != other {
			return first < other
		}
		if !morea || !moreb {
			return !morea && moreb
		}
		a, b = resta, restb
	}
}

func (b *Builder) mkdir(dir int, name string, m *Made) error {
	if len(b.above) > Ample.Depth {
		return fmt.Errorf("more than %d directories one in another: %w", Ample.Depth, ErrTooLarge)
	}
	if err := unix.Mkdirat(dir, name, 0o700); err != nil {
		return err
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	b.above = append(b.above, filling{fd, *m})
	return nil
}

func (b *Builder) file(dir int, name string, m *Made, fill func(*os.File) error) error {
	fd, err := unix.Openat(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if err := fill(f); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return b.dress(dir, name, m)
}

// link adds another name to a file that was made before.
func (b *Builder) link(same string, dir int, name string) error {
	if !Legal(same) || !Before(same, b.last) {
		return fmt.Errorf("the file that it is another name of does not come before it: %w", ErrOrder)
	}
	at, err := unix.Openat(b.above[0].fd, ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { unix.Close(at) }() //nolint:errcheck // it was only gone through
	parts := strings.Split(same, "/")
	for _, part := range parts[:len(parts)-1] { // one by one: the full path may be longer than a call takes
		next, err := unix.Openat(at, part, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		unix.Close(at) //nolint:errcheck // it was only gone through
		at = next
	}
	return unix.Linkat(at, parts[len(parts)-1], dir, name, 0)
}

// leave closes the innermost open directory and sets its owner, mode, attributes and times.
func (b *Builder) leave() error {
	inner := b.above[len(b.above)-1]
	b.above = b.above[:len(b.above)-1]
	defer unix.Close(inner.fd) //nolint:errcheck // nothing was written to it
	dir, name := inner.fd, "."
	if len(b.above) > 0 { // an attribute of a directory is set by its name in the one above it
		dir, name = b.above[len(b.above)-1].fd, path.Base(inner.made.Path)
	}
	return b.dress(dir, name, &inner.made)
}

func (b *Builder) dress(dir int, name string, m *Made) error {
	return m.Dress(dir, name, func(attr string, err error) error {
		if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EPERM) && os.Geteuid() != 0 {
			b.lacks(attr)
			return nil
		}
		return fmt.Errorf("attribute %q: %w", Shorten(attr), err)
	})
}

// Dress sets the owner, mode, attributes and times of an entry of an open directory, in this order: a change
// of owner drops the set-user-ID bit and capabilities, and an ACL goes with the mode. No other process may
// enter the directory until then. Failed judges attributes that cannot be set.
func (m *Made) Dress(dir int, name string, failed func(attr string, err error) error) error {
	if err := unix.Fchownat(dir, name, m.Uid, m.Gid, unix.AT_SYMLINK_NOFOLLOW); err != nil && os.Geteuid() == 0 {
		return err
	}
	if m.kind() != unix.S_IFLNK {
		if err := unix.Fchmodat(dir, name, m.Mode&0o7777, 0); err != nil {
			return err
		}
	}
	for attr, value := range m.Attrs {
		if err := SetAttribute(dir, name, attr, value); err != nil {
			if err = failed(attr, err); err != nil {
				return err
			}
		}
	}
	var times []unix.Timespec
	for _, when := range []time.Time{cmp.Or(m.Accessed, time.Now()), m.Modified} {
		at, err := unix.TimeToTimespec(when)
		if err != nil {
			return err
		}
		times = append(times, at)
	}
	return unix.UtimesNanoAt(dir, name, times, unix.AT_SYMLINK_NOFOLLOW)
}

// Close ends the tree: its directories get what they are to be.
func (b *Builder) Close() error {
	var err error
	for len(b.above) > 0 {
		if b.last == "" { // nothing was made
			b.Abandon()
			break
		}
		err = errors.Join(err, b.leave())
	}
	return err
}

// Abandon lets go of a tree that is not completed. What there is of it stays, closed to others.
func (b *Builder) Abandon() {
	for _, d := range slices.Backward(b.above) {
		unix.Close(d.fd) //nolint:errcheck // nothing was written to it
	}
	b.above = nil
}
