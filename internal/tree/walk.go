package tree

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"orrery/internal/text/sanitize"
)

// Bounds limit how much of a tree a walk visits. Other users may have written the tree, so every
// walk has limits.
type Bounds struct {
	Depth int   // nested directories
	Names int   // names in one directory
	All   int   // paths in the whole tree
	Text  int64 // bytes of all paths together, or 0 for no limit
}

// DefaultBounds are large enough for any tree that a distribution or a person makes. They keep a
// hostile tree from using all memory.
var DefaultBounds = Bounds{Depth: 2048, Names: 4 << 20, All: 16 << 20, Text: 4 << 30}

// An Entry is a path that a walk visits.
type Entry struct {
	Path  string // relative to the top; "." is the top itself
	Dir   int    // the open parent directory, or the top itself for the top; valid while the entry is visited
	Name  string // the name in the parent directory, or "." for the top
	Stat  unix.Stat_t
	Inner int // a directory itself, open until it has been left; otherwise -1
}

// IsDir reports whether the entry is a directory.
func (e *Entry) IsDir() bool { return e.Stat.Mode&unix.S_IFMT == unix.S_IFDIR }

// SkipDir is what Visit returns for a directory that the walk must not enter. For other entries it
// has no effect.
var SkipDir = errors.New("skip this directory") //nolint:staticcheck // named like fs.SkipDir, and no error either

// Steps are the functions that a walk calls. Only Visit is required.
type Steps struct {
	Visit func(*Entry) error // for each path, for a directory before its content
	Leave func(*Entry) error // for each directory that was entered, after its content
	// for a directory whose content exceeds the bounds and is skipped; if nil, the walk fails there
	Beyond func(*Entry, error) error
}

// Walk visits all paths of the tree in the order of their names, a directory before its content. It
// follows no links. It reaches each path from the open parent directory, so a process that renames
// directories cannot redirect it out of the tree. It skips paths that vanish during the walk. Paths
// may be longer than PATH_MAX. If the tree exceeds the bounds, Walk returns an error whose cause is
// ErrTooLarge.
func (r *Root) Walk(ctx context.Context, most Bounds, visit func(*Entry) error) error {
	return r.WalkSteps(ctx, most, Steps{Visit: visit})
}

// WalkSteps is Walk with more functions to call.
func (r *Root) WalkSteps(ctx context.Context, most Bounds, steps Steps) error {
	dir, err := unix.Openat(r.Fd(), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return r.pathError("open", ".", err)
	}
	defer unix.Close(dir) //nolint:errcheck // it was only read
	top := Entry{Path: ".", Dir: dir, Name: ".", Inner: dir}
	if err := unix.Fstat(dir, &top.Stat); err != nil {
		return r.pathError("stat", ".", err)
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
	full bool // the limit of the whole tree has been reached
}

// directory visits a directory and its content.
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
		err = w.boundsError(e, err)
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

// list returns the names in a directory, or an error if they exceed the bounds.
func (w *walk) list(e *Entry, depth int) ([]string, error) {
	if w.full {
		return nil, nil
	}
	again, err := unix.Openat(e.Inner, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, tooManyOpen(err)
	}
	all, err := readNames(again, w.most.Names)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	if depth > w.most.Depth {
		return nil, fmt.Errorf("more than %d nested directories: %w", w.most.Depth, ErrTooLarge)
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

func (w *walk) boundsError(e *Entry, err error) error {
	if errors.Is(err, ErrTooLarge) && w.Beyond != nil {
		return w.Beyond(e, err)
	}
	return w.root.pathError("list", DisplayPath(e.Path), err)
}

// tooManyOpen adds ErrTooLarge to an error about too many open files. A walk keeps all directories
// from the top to the current one open.
func tooManyOpen(err error) error {
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return fmt.Errorf("%w: %w", err, ErrTooLarge)
	}
	return err
}

// ErrGone is the cause of an error about a path that has vanished or been replaced since it was
// listed. A walk continues after it.
var ErrGone = errors.New("it no longer exists")

func (w *walk) one(above *Entry, name string, depth int) error {
	e := Entry{Path: name, Dir: above.Inner, Name: name, Inner: -1}
	if above.Path != "." {
		e.Path = above.Path + "/" + name
	}
	if err := unix.Fstatat(e.Dir, name, &e.Stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return w.visitError("stat", e.Path, err)
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
			return w.boundsError(&e, few)
		}
		return w.visitError("open", e.Path, err)
	}
	defer unix.Close(inner) //nolint:errcheck // it was only read
	if err := unix.Fstat(inner, &e.Stat); err != nil {
		return w.visitError("stat", e.Path, err)
	}
	e.Inner = inner
	return w.directory(&e, depth+1)
}

func (w *walk) visitError(op, at string, err error) error {
	if IsGone(err) {
		return ErrGone
	}
	return w.root.pathError(op, DisplayPath(at), err)
}

// IsGone reports whether an error means that a path has vanished or been replaced since it was
// listed. In a tree that is in use this is not a failure.
func IsGone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) ||
		errors.Is(err, unix.ESTALE) ||
		errors.Is(err, ErrGone) || errors.Is(err, ErrNotRegular)
}

// IgnoreGone returns err, or nil if it means that a path has vanished.
func IgnoreGone(err error) error {
	if IsGone(err) {
		return nil
	}
	return err
}

// DisplayPath returns a path in a form that can be shown: with a limited length and without terminal
// escapes.
func DisplayPath(name string) string {
	const most = 200
	if len(name) > most {
		name = name[:most/2] + "…" + name[len(name)-most/2:]
	}
	return sanitize.Line(name)
}
