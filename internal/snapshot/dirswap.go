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

// A dirSwap is a directory and its replacement beside it. They are exchanged atomically, so that the
// path exists at every moment. The inode number identifies the former directory, whenever a run is
// killed.
type dirSwap struct {
	Path   string `json:"path"`
	Former uint64 `json:"former"` // inode of the former directory, or 0 if there was none
}

func newDirSwap(path string) (*dirSwap, error) {
	former, err := inode(path)
	return &dirSwap{path, former}, err
}

// inode returns the inode number of a directory, or 0 if it does not exist.
func inode(path string) (uint64, error) {
	var s unix.Stat_t
	if err := unix.Lstat(path, &s); err != nil && !errors.Is(err, unix.ENOENT) {
		return 0, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return s.Ino, nil
}

func (p *dirSwap) stagingPath() string {
	return filepath.Join(filepath.Dir(p.Path), "."+filepath.Base(p.Path)+"-aside")
}

func (p *dirSwap) swap() error {
	if p.Former == 0 {
		return os.Rename(p.stagingPath(), p.Path)
	}
	return host.SwapPaths(p.stagingPath(), p.Path)
}

// swapBack restores the former directory if it is not in its place.
func (p *dirSwap) swapBack() error {
	now, err := inode(p.Path)
	if err != nil {
		return err
	}
	beside, err := inode(p.stagingPath())
	if err != nil {
		return err
	}
	switch {
	case p.Former == 0 && now != 0 && beside == 0:
		err = os.Rename(p.Path, p.stagingPath())
	case p.Former != 0 && now == 0 && beside == p.Former:
		err = os.Rename(p.stagingPath(), p.Path)
	case p.Former != 0 && now != p.Former && beside == p.Former:
		err = p.swap()
	}
	if err != nil { // keep the directory beside it, which may be the former one
		return err
	}
	return volume.Erase(p.stagingPath())
}

// restoreRecord is the record of a restore. It exists from the exchange of the directories until the
// new ones are accepted.
type restoreRecord struct {
	Snapshot string     `json:"snapshot"`
	Nodes    []string   `json:"nodes"`
	Pairs    []*dirSwap `json:"pairs"`
}

func swapsPath(dirs host.Dirs, key string) string {
	return filepath.Join(dirs.Site(key), "restoring.json")
}

func (r *Restore) writeSwaps() error {
	under := restoreRecord{Snapshot: r.from.ID, Pairs: r.pairs}
	for _, n := range r.nodes {
		under.Nodes = append(under.Nodes, n.Record.Name)
	}
	text, err := json.Marshal(under)
	if err != nil {
		return err
	}
	return host.WriteFile(host.File{Path: swapsPath(r.dirs, r.from.Site), Content: text, Mode: 0o600})
}

func removeSwaps(dirs host.Dirs, key string) error {
	if err := os.Remove(swapsPath(dirs, key)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Interrupted returns the snapshot whose restore was interrupted, or "", and the nodes to restore.
func Interrupted(dirs host.Dirs, key string) (id string, nodes []string, err error) {
	r, err := readSwaps(dirs, key)
	return r.Snapshot, r.Nodes, err
}

// interruptedProblem returns the problem that tells the user how to continue that restore.
func interruptedProblem(dirs host.Dirs, key, id string, nodes []string) error {
	return problem.New(problem.Left, "the restore of snapshot %s was interrupted", id).At(swapsPath(dirs, key)).
		Try("complete it with orrery snapshot restore %s %s", id, strings.Join(nodes, " "))
}

func readSwaps(dirs host.Dirs, key string) (r restoreRecord, err error) {
	r, err = host.ReadJSON[restoreRecord](swapsPath(dirs, key))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return r, err
}

// Recover undoes a restore that was interrupted, and brings back the former directories. The nodes
// must be stopped, and only the holder of the site's lock may call it.
func Recover(dirs host.Dirs, key string) error {
	r, err := readSwaps(dirs, key)
	for _, p := range r.Pairs {
		err = errors.Join(err, p.swapBack())
	}
	if err != nil {
		return problem.New(problem.Left, "the restore of snapshot %s was interrupted and cannot be undone",
			r.Snapshot).At(swapsPath(dirs, key)).Because(err)
	}
	return removeSwaps(dirs, key)
}
