package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A layer lays a tree down in a directory that is empty, and that nobody else can enter meanwhile. All names are followed below that
// directory only, whatever the list says.
type layer struct {
	ctx   context.Context
	from  *pieces
	root  *os.Root
	saw   func(int64)
	lacks func(attr string) // told of attributes that the file system does not take
}

// Lay lays a tree down in a new directory; its parent is there.
func lay(ctx context.Context, from *pieces, t *Tree, dir string, saw func(int64), lacks func(string)) error {
	entries, err := from.list(t)
	if err != nil {
		return err
	}
	if len(entries) == 0 || entries[0].Name != "." || !entries[0].isDir() {
		return damaged(from.vault, "the list of "+t.Name, errors.New("it does not begin with its top"))
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	l := &layer{ctx: ctx, from: from, root: root, saw: saw, lacks: lacks}
	for i := range entries {
		if err := l.make(&entries[i]); err != nil {
			return fmt.Errorf("%s/%s: %w", t.Name, entries[i].Name, err)
		}
	}
	// Directories last, the innermost first: what is put into one changes its time, and its ACL would be that of what is put into it.
	for i := range slices.Backward(entries) {
		if e := &entries[i]; e.isDir() {
			if err := l.dress(e); err != nil {
				return fmt.Errorf("%s/%s: %w", t.Name, e.Name, err)
			}
		}
	}
	return nil
}

func (l *layer) make(e *Entry) error {
	if err := l.ctx.Err(); err != nil {
		return context.Cause(l.ctx)
	}
	name := string(e.Name)
	switch {
	case e.Same != "":
		return l.root.Link(string(e.Same), name)
	case e.isDir():
		if name == "." {
			return nil
		}
		return l.root.Mkdir(name, 0o700)
	case e.isFile():
		return l.file(e)
	case e.kind() == unix.S_IFLNK:
		if err := l.root.Symlink(string(e.Link), name); err != nil {
			return err
		}
	case e.kind() == unix.S_IFCHR, e.kind() == unix.S_IFBLK, e.kind() == unix.S_IFIFO:
		err := l.beside(name, func(dir int, base string) error {
			return unix.Mknodat(dir, base, e.Mode&^0o7777|0o600, int(unix.Mkdev(e.Major, e.Minor)))
		})
		if err != nil {
			return err
		}
	default:
		return fmt.Errorf("there is no such kind of file: %o", e.Mode)
	}
	return l.dress(e)
}

// beside does something in the directory that a path is in.
func (l *layer) beside(name string, do func(dir int, base string) error) error {
	dir, err := l.root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	return do(int(dir.Fd()), path.Base(name))
}

func (l *layer) file(e *Entry) error {
	f, err := l.root.OpenFile(string(e.Name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(e.Size); err != nil {
		return err
	}
	for _, x := range e.Data {
		at := x.At
		for _, d := range x.Pieces {
			content, err := l.from.get(d)
			if err != nil {
				return err
			}
			if _, err := f.WriteAt(content, at); err != nil {
				return err
			}
			at += int64(len(content))
			l.saw(int64(len(content)))
		}
		if at != x.At+x.Size {
			return fmt.Errorf("its parts are %d bytes instead of %d", at-x.At, x.Size)
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	return l.dress(e)
}

// dress gives a path its owner, mode, attributes and time, in this order: a change of owner drops the set-user-ID bit and capabilities, and
// an ACL goes with the mode.
func (l *layer) dress(e *Entry) error {
	return l.beside(string(e.Name), func(dir int, base string) error {
		if err := unix.Fchownat(dir, base, int(e.Uid), int(e.Gid), unix.AT_SYMLINK_NOFOLLOW); err != nil && os.Geteuid() == 0 {
			return err
		}
		if e.kind() != unix.S_IFLNK {
			if err := unix.Fchmodat(dir, base, e.Mode&0o7777, 0); err != nil {
				return err
			}
		}
		for attr, value := range e.Attrs {
			err := unix.Lsetxattr(itself(dir, base), attr, value, 0)
			if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EPERM) && os.Geteuid() != 0 {
				l.lacks(attr)
				continue
			}
			if err != nil {
				return fmt.Errorf("attribute %s: %w", attr, err)
			}
		}
		when := unix.NsecToTimespec(e.Time)
		return unix.UtimesNanoAt(dir, base, []unix.Timespec{unix.NsecToTimespec(time.Now().UnixNano()), when}, unix.AT_SYMLINK_NOFOLLOW)
	})
}
