package backup

import (
	"context"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/backup/vault"
	"orrery/internal/problem"
)

// A Size is the size of a tree.
type Size struct {
	Bytes int64 `json:"bytes"`
	Paths int64 `json:"paths"`
}

// SizeOf returns the size of a tree.
func SizeOf(ctx context.Context, from Contents, t *vault.Tree) (s Size, err error) {
	err = from.Each(t, func(e *vault.Entry) error {
		s.Paths++
		for _, x := range e.Data {
			s.Bytes = min(s.Bytes, math.MaxInt64-x.Size) + x.Size
		}
		return ctx.Err()
	})
	return s, err
}

// A spaceNeeded is the space needed on one file system.
type spaceNeeded struct {
	Size
	at string // a directory on it
}

// checkSpace returns an error if there is not enough space for the staged files. It counts what the
// backup claims to contain, which may be more than it really has.
func (r *Restore) checkSpace() error {
	needs := map[uint64]*spaceNeeded{}
	for i := range r.Manifest.Trees {
		t := &r.Manifest.Trees[i]
		at := r.Dirs.State
		if t.Kind != vault.LayerTree {
			at, _ = r.places(t)
		}
		if at == "" || t.Kind == vault.LayerTree && !r.TrustLayers {
			continue
		}
		n, err := spaceNeededAt(needs, at)
		if err != nil {
			return err
		}
		size := r.Sizes[t.Name]
		n.Bytes, n.Paths = min(n.Bytes, math.MaxInt64-size.Bytes)+size.Bytes, n.Paths+size.Paths
	}
	for _, n := range needs {
		if err := n.check(); err != nil {
			return err
		}
	}
	return nil
}

// spaceNeededAt returns the need of the file system of a path.
func spaceNeededAt(all map[uint64]*spaceNeeded, path string) (*spaceNeeded, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	for ; err != nil && path != "/"; err = unix.Stat(path, &st) {
		path = filepath.Dir(path)
	}
	if err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if all[st.Dev] == nil {
		all[st.Dev] = &spaceNeeded{at: path}
	}
	return all[st.Dev], nil
}

func (n *spaceNeeded) check() error {
	var st unix.Statfs_t
	if err := unix.Statfs(n.at, &st); err != nil {
		return nil // if space is missing, writing will fail
	}
	if free := int64(st.Bavail) * st.Bsize; free < n.Bytes {
		return problem.New(problem.Unable, "the backup needs %d MiB, and %d MiB are free", n.Bytes>>20, free>>20).
			At(n.at).Try("make room")
	}
	if st.Files > 0 && int64(st.Ffree) < n.Paths { // some file systems report no number of inodes
		return problem.New(problem.Unable, "the backup needs %d inodes, and %d are free", n.Paths, st.Ffree).
			At(n.at).Try("make room")
	}
	return nil
}
