package snapshot

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/volume"
)

// A pair is a directory and the one that takes its place, beside it. They are swapped at once, so
// that one is there at every moment, and by the number of its inode the former is known whenever a
// run is killed.
type pair struct {
	Path   string `json:"path"`
	Former uint64 `json:"former"` // inode of the directory that was there before; 0: none
}

func newPair(path string) (*pair, error) {
	former, err := inode(path)
	return &pair{path, former}, err
}

// inode returns the number of a directory; 0 if it is not there.
func inode(path string) (uint64, error) {
	var s unix.Stat_t
	if err := unix.Lstat(path, &s); err != nil && !errors.Is(err, unix.ENOENT) {
		return 0, &os.PathError{Op: "look at", Path: path, Err: err}
	}
	return s.Ino, nil
}

func (p *pair) aside() string {
	return filepath.Join(filepath.Dir(p.Path), "."+filepath.Base(p.Path)+"-aside")
}

func (p *pair) swap() error {
	if p.Former == 0 {
		return os.Rename(p.aside(), p.Path)
	}
	return host.Exchange(p.aside(), p.Path)
}

// swapBack puts the former directory back, if it is not there.
func (p *pair) swapBack() error {
	now, err := inode(p.Path)
	if err != nil {
		return err
	}
	beside, err := inode(p.aside())
	if err != nil {
		return err
	}
	switch {
	case p.Former == 0 && now != 0 && beside == 0:
		err = os.Rename(p.Path, p.aside())
	case p.Former != 0 && now == 0 && beside == p.Former:
		err = os.Rename(p.aside(), p.Path)
	case p.Former != 0 && now != p.Former && beside == p.Former:
		err = p.swap()
	}
	if err != nil { // what is beside it may be the former directory
		return err
	}
	return volume.Erase(p.aside())
}

// restoring is there while directories are swapped, until it is known that the new ones stay.
type restoring struct {
	Snapshot string   `json:"snapshot"`
	Nodes    []string `json:"nodes"`
	Pairs    []*pair  `json:"pairs"`
}

func pairsPath(dirs host.Dirs, key string) string {
	return filepath.Join(dirs.Site(key), "restoring.json")
}

func (r *Restore) writePairs() error {
	under := restoring{Snapshot: r.from.ID, Pairs: r.pairs}
	for _, n := range r.nodes {
		under.Nodes = append(under.Nodes, n.Record.Name)
	}
	text, err := json.Marshal(under)
	if err != nil {
		return err
	}
	return host.WriteFile(host.File{Path: pairsPath(r.dirs, r.from.Site), Content: text, Mode: 0o600})
}

func removePairs(dirs host.Dirs, key string) error {
	if err := os.Remove(pairsPath(dirs, key)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Unfinished returns the snapshot whose restoring was cut short, and the nodes of it that were to
// be put back; "" if there is none.
func Unfinished(dirs host.Dirs, key string) (id string, nodes []string, err error) {
	r, err := readPairs(dirs, key)
	return r.Snapshot, r.Nodes, err
}

// cutShort says how to go on with that.
func cutShort(dirs host.Dirs, key, id string, nodes []string) error {
	return problem.New(problem.Left, "the restoring of snapshot %s was cut short", id).At(pairsPath(dirs, key)).
		Try("orrery snapshot restore %s %s", id, strings.Join(nodes, " "))
}

func readPairs(dirs host.Dirs, key string) (r restoring, err error) {
	r, err = host.ReadJSON[restoring](pairsPath(dirs, key))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return r, err
}

// Recover takes back a restoring that was cut short: what was there before it is put back. The
// nodes must be stopped, and only the holder of the site's lock may call it.
func Recover(dirs host.Dirs, key string) error {
	r, err := readPairs(dirs, key)
	for _, p := range r.Pairs {
		err = errors.Join(err, p.swapBack())
	}
	if err != nil {
		return problem.New(problem.Left, "the restoring of snapshot %s was cut short, and cannot be taken back",
			r.Snapshot).At(pairsPath(dirs, key)).Because(err)
	}
	return removePairs(dirs, key)
}
