package backup

import (
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/backup/vault"
	"orrery/internal/problem"
)

// A need is what is laid down on one file system.
type need struct {
	at           string // a directory of it
	bytes, paths int64
}

// room wants that there is space for what is laid down, before it is: a backup may say that there is more in it than it has.
func (r *Restore) room() error {
	if r.Apart != nil {
		n := need{r.Dirs.State, r.Apart.Bytes, r.Apart.Paths}
		return n.met()
	}
	needs := map[uint64]*need{}
	from := vault.NewPieces(r.From)
	for i := range r.Manifest.Trees {
		t := &r.Manifest.Trees[i]
		at := r.Dirs.State
		if t.Kind != vault.LayerTree {
			at, _ = r.places(t)
		}
		if at == "" || t.Kind == vault.LayerTree && !r.TrustLayers {
			continue
		}
		n, err := needOf(needs, at)
		if err != nil {
			return err
		}
		err = from.Each(t, func(e *vault.Entry) error {
			n.paths++
			for _, x := range e.Data {
				n.bytes = min(n.bytes, math.MaxInt64-x.Size) + x.Size
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, n := range needs {
		if err := n.met(); err != nil {
			return err
		}
	}
	return nil
}

// needOf gives the need of the file system on which a path will be.
func needOf(all map[uint64]*need, path string) (*need, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	for ; err != nil && path != "/"; err = unix.Stat(path, &st) {
		path = filepath.Dir(path)
	}
	if err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if all[st.Dev] == nil {
		all[st.Dev] = &need{at: path}
	}
	return all[st.Dev], nil
}

func (n *need) met() error {
	var st unix.Statfs_t
	if err := unix.Statfs(n.at, &st); err != nil {
		return nil // it will show
	}
	if free := int64(st.Bavail) * st.Bsize; free < n.bytes {
		return problem.New(problem.Unable, "the backup has %d MiB in it, and there are %d MiB free", n.bytes>>20, free>>20).At(n.at).Try("make room")
	}
	if st.Files > 0 && int64(st.Ffree) < n.paths { // not every file system has a number of inodes
		return problem.New(problem.Unable, "the backup has %d paths in it, and there is room for %d", n.paths, st.Ffree).At(n.at).Try("make room")
	}
	return nil
}
