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

// A pair is a directory and its replacement beside it. They are exchanged atomically, so that the
// path exists at every moment. The inode number identifies the former directory, whenever a run is
// killed.
type pair struct {
	Path   string `json:"path"`
	Former uint64 `json:"former"` // inode of the former directory, or 0 if there was none
}

func newPair(path string) (*pair, error) {
	former, err := inode(path)
	return &pair{path, former}, err
}

// inode returns the inode number of a directory, or 0 if it does not exist.
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

// swapBack restores the former directory if it is not in its place.
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
	if err != nil { // keep the directory beside it, which may be the former one
		return err
	}
	return volume.Erase(p.aside())
}

// restoring is the record of a restore. It exists from the exchange of the directories until the
// new ones are accepted.
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

// Unfinished returns the snapshot whose restore was interrupted, or "", and the nodes to restore.
func Unfinished(dirs host.Dirs, key string) (id string, nodes []string, err error) {
	r, err := readPairs(dirs, key)
	return r.Snapshot, r.Nodes, err
}

// cutShort returns the problem that tells the user how to continue that restore.
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

// Recover undoes a restore that was interrupted, and brings back the former directories. The nodes
// must be stopped, and only the holder of the site's lock may call it.
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
