package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/backup/vault"
	"orrery/internal/problem"
	"orrery/internal/tree"
	"orrery/internal/treesync"
)

// A walk creates the list of a tree. Processes of nodes may change the tree at the same time.
type walk struct {
	ctx     context.Context
	source  *Source
	former  map[treesync.Name]*vault.Entry // as the tree was when it was last read
	pack    Adder
	buffer  []byte
	entries []vault.Entry
	left    []string               // what is not in the list, and why
	first   map[file]treesync.Name // files with several names
	bytes   int64                  // total size of all files
	read    int64                  // bytes read in this walk
	saw     func(int64)
}

// An Adder stores pieces of content. It is a Packer of a vault, on this machine or another one.
type Adder interface {
	Add(content []byte) (vault.Digest, error)
}

type file struct{ dev, ino uint64 }

// minAge is how old the last change of a file must be so that a later change has another time. The
// kernel's clock for files has a resolution of up to ten milliseconds.
const minAge = 50 * time.Millisecond

// bounds limit a tree. All of its paths are in memory, and in one text.
var bounds = tree.Bounds{Depth: tree.DefaultBounds.Depth, Names: tree.DefaultBounds.Names,
	All: tree.DefaultBounds.All, Text: 1 << 30}

// run walks the tree. It does not read files that are unchanged since the last time.
func (w *walk) run() ([]vault.Entry, error) {
	var root *tree.Root
	dir, err := filepath.EvalSymlinks(w.source.Dir) // the user decides where a volume is
	if err == nil {
		root, err = tree.Open(dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, tree.ErrGone
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	w.first = map[file]treesync.Name{}
	err = root.WalkSteps(w.ctx, bounds, tree.Steps{Visit: w.visit, Beyond: func(e *tree.Entry, why error) error {
		w.recordSkipped(e.Path, why.Error())
		return nil
	}})
	return w.entries, err
}

func (w *walk) visit(e *tree.Entry) error {
	if w.source.Skip != nil && w.source.Skip(e.Path) {
		return tree.SkipDir
	}
	if e.Stat.Mode&unix.S_IFMT == unix.S_IFSOCK {
		return nil // no process will listen on it after a restore
	}
	if tree.IsDevice(&e.Stat) {
		w.recordSkipped(e.Path, "a device")
		return nil
	}
	err := w.add(e)
	if tree.IsGone(err) {
		return tree.ErrGone
	}
	return err
}

// recordSkipped records what is not in the list. It names only the first few.
func (w *walk) recordSkipped(at, why string) {
	const most = 10
	if len(w.left) < most {
		w.left = append(w.left, fmt.Sprintf("%s: %s", tree.DisplayPath(at), why))
	} else if len(w.left) == most {
		w.left = append(w.left, "and more")
	}
}

// add adds one path.
func (w *walk) add(at *tree.Entry) error {
	st := &at.Stat
	e := vault.Entry{Entry: treesync.NewEntry(at), Ino: st.Ino, Changed: st.Ctim.Nano()}
	id := file{st.Dev, st.Ino}
	if st.Nlink > 1 && !e.IsDir() {
		if first, ok := w.first[id]; ok {
			e.Same, e.Ino, e.Changed = first, 0, 0
			w.entries = append(w.entries, e)
			return nil
		}
	}
	if e.IsFile() {
		e.Size = st.Size
		w.bytes += st.Size
		if w.source.Bound > 0 && w.bytes > w.source.Bound {
			return problem.New(problem.Mistake, "the directory has more than %d MiB", w.source.Bound>>20).
				At(w.source.Dir).
				Try("keep large files outside the site directory")
		}
	}
	if old := w.former[e.Name]; old != nil && unchanged(old, &e) {
		kept := *old
		e = kept
	} else if err := w.readEntry(at, &e); err != nil {
		return err
	}
	if why := e.ExceedsLimit(); why != "" {
		w.recordSkipped(at.Path, why)
		if e.IsDir() {
			return tree.SkipDir
		}
		return nil
	}
	if st.Nlink > 1 && !e.IsDir() {
		w.first[id] = e.Name
	}
	w.entries = append(w.entries, e)
	return nil
}

// unchanged reports whether an entry is unchanged. Every change of a file gives it another change
// time, which no program can set.
func unchanged(old, current *vault.Entry) bool {
	return old.Changed != 0 && old.Same == "" && old.Changed == current.Changed && old.Ino == current.Ino &&
		old.Mode == current.Mode &&
		old.Size == current.Size &&
		old.Time == current.Time && old.Uid == current.Uid && old.Gid == current.Gid
}

// readEntry reads everything of an entry that stat(2) does not return.
func (w *walk) readEntry(at *tree.Entry, e *vault.Entry) error {
	begun := time.Now()
	if e.IsFile() {
		if err := w.file(at.Dir, at.Name, e); err != nil {
			return err
		}
	}
	if err := e.Read(at, treesync.PersistentAttrs); err != nil {
		return err
	}
	if e.Changed > begun.Add(-minAge).UnixNano() {
		e.Changed = 0
	}
	return nil
}

// within reports whether a path is one of tops, or below one of them.
func within(at string, tops ...string) bool {
	return slices.ContainsFunc(tops, func(top string) bool { return at == top || strings.HasPrefix(at, top+"/") })
}
