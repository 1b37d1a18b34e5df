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

// A Header describes a path of a tree that is being built.
type Header struct {
	Path     string // relative to the top; "." is the top itself
	Mode     uint32 // with the file type, as in stat(2)
	Uid, Gid int
	Modified time.Time
	Accessed time.Time         // the zero value means now
	Link     string            // the target of a symbolic link
	Same     string            // the path of a file to hard-link; all other fields are ignored
	Attrs    map[string][]byte // extended attributes
}

func (m *Header) kind() uint32 { return m.Mode & unix.S_IFMT }

// A Builder builds a tree path by path, in the order in which Walk visits them: names in order, a
// directory before its content. So no path comes twice. Each path is created in a directory that
// the Builder itself has created and holds open, so no link is ever followed, whatever the paths
// are.
type Builder struct {
	top   string
	above []pendingDir // the directories on the way to the last path, the top first
	last  string
	lacks func(attr string)
}

// A pendingDir is a directory that is being filled. It gets its attributes after its content: new
// files in a directory change its time, and inherit its ACL.
type pendingDir struct {
	fd   int
	made Header
}

// NewBuilder starts a tree in a new directory. The path is trusted. It calls lacks for attributes that
// the file system does not support.
func NewBuilder(top string, lacks func(attr string)) (*Builder, error) {
	if err := os.Mkdir(top, 0o700); err != nil {
		return nil, err
	}
	fd, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: top, Err: err}
	}
	return &Builder{top: top, above: []pendingDir{{fd: fd}}, lacks: lacks}, nil
}

// ErrOrder is the cause of an error about paths that do not come in the order of Walk.
var ErrOrder = errors.New("it is out of order")

// Add creates the next path. Fill writes the content of a regular file.
func (b *Builder) Add(m *Header, fill func(*os.File) error) error {
	if err := b.add(m, fill); err != nil {
		return &fs.PathError{Op: "create", Path: DisplayPath(path.Join(b.top, m.Path)), Err: err}
	}
	return nil
}

func (b *Builder) add(m *Header, fill func(*os.File) error) error {
	if b.last == "" {
		if m.Path != "." || m.kind() != unix.S_IFDIR {
			return fmt.Errorf("the first path is not the root directory: %w", ErrOrder)
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
	case unix.S_IFIFO, unix.S_IFCHR: // the only device that can be created is 0:0, an overlayfs whiteout
		if err := unix.Mknodat(dir, name, m.kind()|0o600, 0); err != nil {
			return err
		}
	default:
		return fmt.Errorf("it is %s: %w", Kind(m.Mode), ErrNotRegular)
	}
	return b.setMetadata(dir, name, m)
}

// AddLink makes the next path a hard link to an existing file in a tree of Orrery's own, and sets its
// attributes. No other process may write to that file.
func (b *Builder) AddLink(m *Header, from *Root, name string) error {
	err := b.enter(m.Path)
	if err == nil {
		dir, base := b.above[len(b.above)-1].fd, path.Base(m.Path)
		if err = unix.Linkat(from.Fd(), name, dir, base, 0); err == nil {
			err = b.setMetadata(dir, base, m)
		}
	}
	if err != nil {
		return &fs.PathError{Op: "create", Path: DisplayPath(path.Join(b.top, m.Path)), Err: err}
	}
	return nil
}

// enter leaves all directories that do not contain the path. The innermost one left must be its
// parent directory.
func (b *Builder) enter(name string) error {
	if !ValidPath(name) {
		return fmt.Errorf("invalid path in a tree: %w", unix.EINVAL)
	}
	if !PathLess(b.last, name) {
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
		return fmt.Errorf("it does not follow its directory: %w", ErrOrder)
	}
	b.last = name
	return nil
}

// ValidPath reports whether name is a clean relative path below the top of a tree.
func ValidPath(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || len(part) > unix.NAME_MAX || strings.Contains(part, "\x00") {
			return false
		}
	}
	return true
}

// PathLess reports whether Walk visits path a before path b.
func PathLess(a, b string) bool {
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

func (b *Builder) mkdir(dir int, name string, m *Header) error {
	if len(b.above) > DefaultBounds.Depth {
		return fmt.Errorf("more than %d nested directories: %w", DefaultBounds.Depth, ErrTooLarge)
	}
	if err := unix.Mkdirat(dir, name, 0o700); err != nil {
		return err
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	b.above = append(b.above, pendingDir{fd, *m})
	return nil
}

func (b *Builder) file(dir int, name string, m *Header, fill func(*os.File) error) error {
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
	return b.setMetadata(dir, name, m)
}

// link adds another name to a file that has been created before.
func (b *Builder) link(same string, dir int, name string) error {
	if !ValidPath(same) || !PathLess(same, b.last) {
		return fmt.Errorf("the target of the hard link does not precede it: %w", ErrOrder)
	}
	at, err := unix.Openat(b.above[0].fd, ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { unix.Close(at) }() //nolint:errcheck // it was only gone through
	parts := strings.Split(same, "/")
	for _, part := range parts[:len(parts)-1] { // one by one: the whole path may be longer than PATH_MAX
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
	if len(b.above) > 0 { // a directory's attributes are set by its name in the parent directory
		dir, name = b.above[len(b.above)-1].fd, path.Base(inner.made.Path)
	}
	return b.setMetadata(dir, name, &inner.made)
}

func (b *Builder) setMetadata(dir int, name string, m *Header) error {
	return m.SetMetadata(dir, name, func(attr string, err error) error {
		if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EPERM) && os.Geteuid() != 0 {
			b.lacks(attr)
			return nil
		}
		return fmt.Errorf("attribute %q: %w", DisplayPath(attr), err)
	})
}

// SetMetadata sets the owner, mode, attributes and times of an entry of an open directory, in this order:
// a change of owner drops the set-user-ID bit and capabilities, and an ACL goes with the mode. No
// other process may enter the directory until then. Failed decides about attributes that cannot be
// set.
func (m *Header) SetMetadata(dir int, name string, failed func(attr string, err error) error) error {
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

// Close completes the tree and sets the attributes of its open directories.
func (b *Builder) Close() error {
	var err error
	for len(b.above) > 0 {
		if b.last == "" { // nothing was created
			b.Abandon()
			break
		}
		err = errors.Join(err, b.leave())
	}
	return err
}

// Abandon closes a tree that is not complete. Its paths stay, but are not accessible to other
// users.
func (b *Builder) Abandon() {
	for _, d := range slices.Backward(b.above) {
		unix.Close(d.fd) //nolint:errcheck // nothing was written to it
	}
	b.above = nil
}
