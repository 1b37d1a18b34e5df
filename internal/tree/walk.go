package tree

import (
	"context"
	"errors"
	"fmt"
	"path"

	"golang.org/x/sys/unix"
)

// Bounds are how much of a tree a walk takes. Whoever writes the tree decides how large it is, so every walk has some.
type Bounds struct {
	Depth int // directories one in another
	Names int // in one directory
	All   int // paths in the whole tree
}

// Ample bounds hold any tree that a distribution or a person makes, and keep what an enemy makes from taking all memory.
var Ample = Bounds{Depth: 2048, Names: 4 << 20, All: 16 << 20}

// An Entry is one path that a walk has come to.
type Entry struct {
	Path string // from the top; "." is the top itself
	Dir  int    // the open directory that it is in; of the top, the top itself. Valid while the entry is visited
	Name string // in that directory; of the top, "."
	Stat unix.Stat_t
}

// IsDir reports whether it is a directory.
func (e *Entry) IsDir() bool { return e.Stat.Mode&unix.S_IFMT == unix.S_IFDIR }

// SkipDir is what visit gives for a directory that the walk shall not go into.
var SkipDir = errors.New("skip this directory") //nolint:staticcheck // named like fs.SkipDir, and no error either

// Walk visits all paths of the tree, a directory before what is in it, names in order. No link is followed, and each path is reached
// from the open directory above it, so nothing outside of the tree can be slipped in while others rename. What vanishes meanwhile is
// left out. Paths may be longer than PATH_MAX. What goes beyond the bounds is an error whose cause is ErrTooLarge.
func (r *Root) Walk(ctx context.Context, most Bounds, visit func(*Entry) error) error {
	top := Entry{Path: ".", Dir: r.Fd(), Name: "."}
	if err := unix.Fstat(top.Dir, &top.Stat); err != nil {
		return r.wrong("stat", ".", err)
	}
	w := walk{ctx: ctx, root: r, most: most, visit: visit}
	if err := visit(&top); err != nil {
		if errors.Is(err, SkipDir) {
			return nil
		}
		return err
	}
	dir, err := unix.Openat(top.Dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return r.wrong("open", ".", err)
	}
	defer unix.Close(dir) //nolint:errcheck // it was only read
	return w.directory(dir, "", 1)
}

type walk struct {
	ctx   context.Context
	root  *Root
	most  Bounds
	visit func(*Entry) error
	seen  int
}

// directory visits what is in an open directory.
func (w *walk) directory(dir int, at string, depth int) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	again, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return w.root.wrong("open", at, err)
	}
	all, err := names(again, w.most.Names)
	if err != nil {
		return w.root.wrong("list", Shorten(at), err)
	}
	if depth > w.most.Depth && len(all) > 0 {
		return w.root.wrong("list", Shorten(at), fmt.Errorf("more than %d directories one in another: %w", w.most.Depth, ErrTooLarge))
	}
	if w.seen += len(all); w.seen > w.most.All {
		return w.root.wrong("list", ".", fmt.Errorf("more than %d paths: %w", w.most.All, ErrTooLarge))
	}
	for _, name := range all {
		if err := w.one(dir, name, path.Join(at, name), depth); err != nil && !errors.Is(err, errGone) {
			return err
		}
	}
	return nil
}

// errGone is of a path that has vanished, or become another thing, since it was listed.
var errGone = errors.New("it is there no more")

func (w *walk) one(dir int, name, at string, depth int) error {
	e := Entry{Path: at, Dir: dir, Name: name}
	if err := unix.Fstatat(dir, name, &e.Stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return w.missed("stat", at, err)
	}
	if !e.IsDir() {
		return w.visit(&e)
	}
	inner, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return w.missed("open", at, err)
	}
	defer unix.Close(inner) //nolint:errcheck // it was only read
	if err := unix.Fstat(inner, &e.Stat); err != nil {
		return w.missed("stat", at, err)
	}
	if err := w.visit(&e); err != nil {
		if errors.Is(err, SkipDir) {
			return nil
		}
		return err
	}
	return w.directory(inner, at, depth+1)
}

func (w *walk) missed(op, at string, err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ESTALE) {
		return errGone
	}
	return w.root.wrong(op, Shorten(at), err)
}

// Shorten gives a path of a length that can be shown.
func Shorten(name string) string {
	const most = 200
	if len(name) <= most {
		return name
	}
	return name[:most/2] + "…" + name[len(name)-most/2:]
}
