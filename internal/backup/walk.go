package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// A walk makes the list of a tree. Processes of nodes may change the tree meanwhile, so every directory and file is opened from
// the directory above it, and no link is followed: nothing outside of the tree can be slipped in.
type walk struct {
	ctx     context.Context
	source  *Source
	former  map[Name]*Entry // as the tree was when it was last read
	pack    *packer
	buffer  []byte
	entries []Entry
	first   map[file]Name // files with several names
	bytes   int64         // in all files
	read    int64         // of these read now
	saw     func(int64)
}

type file struct{ dev, ino uint64 }

// settled is how old the last change of a file must be for its time to tell a later one apart: the kernel's clock for files goes by
// ticks of up to ten milliseconds.
const settled = 50 * time.Millisecond

// run goes through the tree. What is as it was the last time is not read.
func (w *walk) run() ([]Entry, error) {
	top, err := unix.Open(w.source.Dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: w.source.Dir, Err: err}
	}
	defer unix.Close(top) //nolint:errcheck // it was only read
	w.first = map[file]Name{}
	var st unix.Stat_t
	if err := unix.Fstat(top, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: w.source.Dir, Err: err}
	}
	if err := w.add(top, ".", ".", &st); err != nil {
		return nil, err
	}
	err = w.directory(top, "")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errVanished) {
		err = errVanished
	}
	return w.entries, err
}

// directory adds all that is in an open directory.
func (w *walk) directory(dir int, at string) error {
	if err := w.ctx.Err(); err != nil {
		return context.Cause(w.ctx)
	}
	names, err := namesIn(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		inner := path.Join(at, name)
		if w.source.Skip != nil && w.source.Skip(inner) {
			continue
		}
		if err := w.one(dir, name, inner); err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

// gone tells errors that mean that a path has vanished, or become another thing, since it was listed.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENXIO) ||
		errors.Is(err, unix.ESTALE) || errors.Is(err, errVanished)
}

func namesIn(dir int) ([]string, error) {
	again, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(again), "directory")
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

func (w *walk) one(dir int, name, at string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFSOCK:
		return nil // nobody listens any more when it comes back
	case unix.S_IFDIR:
	default:
		return w.add(dir, name, Name(at), &st)
	}
	inner, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(inner) //nolint:errcheck // it was only read
	if err := w.add(dir, name, Name(at), &st); err != nil {
		return err
	}
	return w.directory(inner, at)
}

// add adds one path.
func (w *walk) add(dir int, name string, at Name, st *unix.Stat_t) error {
	e := Entry{Name: at, Mode: st.Mode, Uid: st.Uid, Gid: st.Gid, Time: st.Mtim.Nano(), Ino: st.Ino, Changed: st.Ctim.Nano()}
	id := file{st.Dev, st.Ino}
	if st.Nlink > 1 && !e.isDir() {
		if first, has := w.first[id]; has {
			e.Same, e.Ino, e.Changed = first, 0, 0
			w.entries = append(w.entries, e)
			return nil
		}
	}
	if e.isFile() {
		e.Size = st.Size
		w.bytes += st.Size
		if w.source.Bound > 0 && w.bytes > w.source.Bound {
			return problem.New(problem.Mistake, "there is more than %d MiB in the directory", w.source.Bound>>20).At(w.source.Dir).
				Try("keep large files elsewhere: the site directory is for what declares the site")
		}
	}
	if was := w.former[at]; was != nil && unchanged(was, &e) {
		kept := *was
		e = kept
	} else if err := w.fresh(dir, name, &e); err != nil {
		return err
	}
	if st.Nlink > 1 && !e.isDir() {
		w.first[id] = at
	}
	w.entries = append(w.entries, e)
	return nil
}

// unchanged reports whether an entry is as it was: every change of a file gives it another time of change, which nobody can set.
func unchanged(was, is *Entry) bool {
	return was.Changed != 0 && was.Same == "" && was.Changed == is.Changed && was.Ino == is.Ino && was.Mode == is.Mode && was.Size == is.Size &&
		was.Time == is.Time && was.Uid == is.Uid && was.Gid == is.Gid
}

// fresh reads all of an entry but what stat(2) told.
func (w *walk) fresh(dir int, name string, e *Entry) error {
	begun := time.Now()
	var err error
	switch e.kind() {
	case unix.S_IFREG:
		if err := w.file(dir, name, e); err != nil {
			return err
		}
	case unix.S_IFLNK:
		if e.Link, err = readLink(dir, name); err != nil {
			return err
		}
	case unix.S_IFCHR, unix.S_IFBLK:
		var st unix.Stat_t
		if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		e.Major, e.Minor = unix.Major(st.Rdev), unix.Minor(st.Rdev)
	}
	if e.Attrs, err = attributes(dir, name); err != nil {
		return err
	}
	if e.Changed > begun.Add(-settled).UnixNano() {
		e.Changed = 0
	}
	return nil
}

func readLink(dir int, name string) (Name, error) {
	for size := 256; ; size *= 2 {
		b := make([]byte, size)
		n, err := unix.Readlinkat(dir, name, b)
		if err != nil || n < size {
			return Name(b[:max(n, 0)]), err
		}
	}
}

// within reports whether a path is one of these, or below it.
func within(at string, tops ...string) bool {
	return slices.ContainsFunc(tops, func(top string) bool { return at == top || strings.HasPrefix(at, top+"/") })
}
