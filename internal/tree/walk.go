package tree

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"orrery/internal/text/sanitize"
)

// Bounds are how much of a tree a walk takes. Whoever writes the tree decides how large it is, so
// every walk has some.
type Bounds struct {
	Depth int   // directories one in another
	Names int   // in one directory
	All   int   // paths in the whole tree
	Text  int64 // bytes of all paths together; 0: any number
}

// Ample bounds hold any tree that a distribution or a person makes, and keep what an enemy makes
// from taking all memory.
var Ample = Bounds{Depth: 2048, Names: 4 << 20, All: 16 << 20, Text: 4 << 30}

// An Entry is one path that a walk has come to.
type Entry struct {
	Path  string // from the top; "." is the top itself
	Dir   int    // the open directory that it is in; of the top, the top itself. Valid while the entry is visited
	Name  string // in that directory; of the top, "."
	Stat  unix.Stat_t
	Inner int // of a directory, itself, open while it is visited and until it has been left; else -1
}

// IsDir reports whether it is a directory.
func (e *Entry) IsDir() bool { return e.Stat.Mode&unix.S_IFMT == unix.S_IFDIR }

// SkipDir is what visit gives for a directory that the walk shall not go into; for anything else it
// says nothing.
var SkipDir = errors.New("skip this directory") //nolint:staticcheck // named like fs.SkipDir, and no error either

// Steps are what a walk does on its way. Only Visit must be there.
type Steps struct {
	Visit func(*Entry) error // at each path, a directory before what is in it
	Leave func(*Entry) error // at a directory into which it went, after what is in it
	// at a directory whose content is beyond the bounds, and left out; without it, that ends the walk
	Beyond func(*Entry, error) error
}

// Walk visits all paths of the tree, a directory before what is in it, names in order. No link is
// followed, and each path is reached from the open directory above it, so nothing outside of the
// tree can be slipped in while others rename. What vanishes meanwhile is left out. Paths may be
// longer than PATH_MAX. What goes beyond the bounds is an error whose cause is ErrTooLarge.
func (r *Root) Walk(ctx context.Context, most Bounds, visit func(*Entry) error) error {
	return r.WalkSteps(ctx, most, Steps{Visit: visit})
}

// WalkSteps is Walk for those who do more on the way.
func (r *Root) WalkSteps(ctx context.Context, most Bounds, steps Steps) error {
	dir, err := unix.Openat(r.Fd(), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return r.wrong("open", ".", err)
	}
	defer unix.Close(dir) //nolint:errcheck // it was only read
	top := Entry{Path: ".", Dir: dir, Name: ".", Inner: dir}
	if err := unix.Fstat(dir, &top.Stat); err != nil {
		return r.wrong("stat", ".", err)
	}
	w := walk{ctx: ctx, root: r, most: most, Steps: steps}
	return w.directory(&top, 1)
}

type walk struct {
	Steps
	ctx  context.Context
	root *Root
	most Bounds
	seen int
	text int64
	full bool // it has as much as it takes of the whole tree
}

// directory visits a directory and what is in it.
func (w *walk) directory(e *Entry, depth int) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	if err := w.Visit(e); err != nil {
		if errors.Is(err, SkipDir) {
			return nil
		}
		return err
	}
	all, err := w.list(e, depth)
	if err != nil {
		err = w.beyond(e, err)
	}
	if err != nil {
		return err
	}
	for _, name := range all {
		if err := w.one(e, name, depth); err != nil && !errors.Is(err, ErrGone) {
			return err
		}
	}
	if w.Leave == nil {
		return nil
	}
	return w.Leave(e)
}

// list returns the names in a directory, unless they are too many.
func (w *walk) list(e *Entry, depth int) ([]string, error) {
	if w.full {
		return nil, nil
	}
	again, err := unix.Openat(e.Inner, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, tooManyOpen(err)
	}
	all, err := names(again, w.most.Names)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	if depth > w.most.Depth {
		return nil, fmt.Errorf("more than %d directories one in another: %w", w.most.Depth, ErrTooLarge)
	}
	w.seen += len(all)
	for _, name := range all {
		w.text += int64(len(e.Path) + 1 + len(name))
	}
	switch {
	case w.seen > w.most.All:
		w.full = true
		return nil, fmt.Errorf("more than %d paths in the whole tree: %w", w.most.All, ErrTooLarge)
	case w.most.Text > 0 && w.text > w.most.Text:
		w.full = true
		return nil, fmt.Errorf("more than %d bytes of paths in the whole tree: %w", w.most.Text, ErrTooLarge)
	}
	return all, nil
}

func (w *walk) beyond(e *Entry, err error) error {
	if errors.Is(err, ErrTooLarge) && w.Beyond != nil {
		return w.Beyond(e, err)
	}
	return w.root.wrong("list", Shorten(e.Path), err)
}

// tooManyOpen: a walk holds the directories open that it is in.
func tooManyOpen(err error) error {
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return fmt.Errorf("%w: %w", err, ErrTooLarge)
	}
	return err
}

// ErrGone is the cause of an error about a path that has vanished, or become another thing, since
// it was listed. A walk goes on from there.
var ErrGone = errors.New("it is there no more")

func (w *walk) one(above *Entry, name string, depth int) error {
	e := Entry{Path: name, Dir: above.Inner, Name: name, Inner: -1}
	if above.Path != "." {
		e.Path = above.Path + "/" + name
	}
	if err := unix.Fstatat(e.Dir, name, &e.Stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return w.missed("stat", e.Path, err)
	}
	if !e.IsDir() {
		if err := w.Visit(&e); !errors.Is(err, SkipDir) {
			return err
		}
		return nil
	}
	inner, err := unix.Openat(e.Dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		if few := tooManyOpen(err); errors.Is(few, ErrTooLarge) {
			return w.beyond(&e, few)
		}
		return w.missed("open", e.Path, err)
	}
	defer unix.Close(inner) //nolint:errcheck // it was only read
	if err := unix.Fstat(inner, &e.Stat); err != nil {
		return w.missed("stat", e.Path, err)
	}
	e.Inner = inner
	return w.directory(&e, depth+1)
}

func (w *walk) missed(op, at string, err error) error {
	if Vanished(err) {
		return ErrGone
	}
	return w.root.wrong(op, Shorten(at), err)
}

// Vanished tells errors that mean that a path has vanished, or become another thing, since it was
// listed. In a tree in which somebody works that is no fault.
func Vanished(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) ||
		errors.Is(err, unix.ESTALE) ||
		errors.Is(err, ErrGone) || errors.Is(err, ErrNotRegular)
}

// Standing returns err, or nil if it means that a path has vanished.
func Standing(err error) error {
	if Vanished(err) {
		return nil
	}
	return err
}

// Shorten returns a path as it can be shown: of a bounded length, and without what a terminal obeys.
func Shorten(name string) string {
	const most = 200
	if len(name) > most {
		name = name[:most/2] + "…" + name[len(name)-most/2:]
	}
	return sanitize.Line(name)
}
