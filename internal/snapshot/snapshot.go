// Package snapshot stores the state of a set of nodes at one moment.
//
// A snapshot has what each node has written, and its volumes.
package snapshot

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/tree"
	"orrery/internal/volume"
)

// A Snapshot is a directory of the host: snapshot.json, nodes/ID/upper (private layers) and volumes/NAME/NODE.
type Snapshot struct {
	ID   string    `json:"id"`
	Site string    `json:"site"` // when all nodes were frozen
	Time time.Time `json:"time"` // when all nodes stood still
	Who  string    `json:"who"`
	// Scheduled means that the site file asks for it, so that it is removed when it is old enough.
	Scheduled bool     `json:"scheduled,omitempty"`
	Nodes     []Node   `json:"nodes"`
	Volumes   []Volume `json:"volumes,omitempty"`
	Omitted   []string `json:"omitted,omitempty"` // volumes that are not in it, and why
	Left      []string `json:"left,omitempty"`    // files of nodes and volumes that are not in it, and why
	Pause     float64  `json:"pause_seconds"`     // from the first freeze to the last thaw, or 0 if no node ran
	Skew      float64  `json:"skew_seconds"`      // between the first node that was frozen and the last
	Seconds   float64  `json:"seconds"`           // total duration
	// hosts that have a part of it, or none if it was taken on one host alone
	Hosts []string `json:"hosts,omitempty"`
	Dir   string   `json:"-"`
}

// A Node is one node of a snapshot.
type Node struct {
	Record  *nodedir.Record   `json:"record"` // node.json at that time
	Running bool              `json:"running"`
	How     volume.CopyMethod `json:"how,omitempty"`    // or "" if its engine has no directory for the private layer
	Memory  bool              `json:"memory,omitempty"` // the snapshot has its memory
}

// A Volume is the persistent data of one node, or of all nodes that share it.
type Volume struct {
	Name string            `json:"name"`
	Node string            `json:"node"` // the name of its directory
	Path string            `json:"path"` // where it is used
	How  volume.CopyMethod `json:"how"`
}

const file = "snapshot.json"

// PrivateDir returns the directory of a node's private layer in the snapshot.
func (s *Snapshot) PrivateDir(id int) string {
	return filepath.Join(s.Dir, "nodes", strconv.Itoa(id), "upper")
}

// MemoryPath returns the path of a node's memory in the snapshot.
func (s *Snapshot) MemoryPath(id int) string {
	return filepath.Join(s.Dir, "nodes", strconv.Itoa(id), "memory")
}

// VolumeDir returns the directory of a volume's data in the snapshot.
func (s *Snapshot) VolumeDir(v Volume) string { return filepath.Join(s.Dir, "volumes", v.Name, v.Node) }

// Open opens a snapshot of a site.
func Open(dirs host.Dirs, key, id string) (*Snapshot, error) {
	if id == "" || strings.HasPrefix(id, ".") || strings.Contains(id, "/") {
		return nil, absent(key, id)
	}
	dir := filepath.Join(dirs.Snapshots(key), id)
	s, err := host.ReadJSON[Snapshot](filepath.Join(dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, absent(key, id)
	}
	if err != nil {
		return nil, problem.New(problem.Failed, "snapshot %s cannot be read", id).At(dir).Because(err).
			Try("remove it with orrery snapshot rm %s", id)
	}
	s.Dir = dir
	return &s, nil
}

func absent(key, id string) error {
	return problem.New(problem.Usage, "snapshot %q of %s does not exist", id, key).
		Try("orrery snapshot ls lists the existing ones")
}

// List returns the snapshots of a site, the oldest first.
func List(dirs host.Dirs, key string) ([]*Snapshot, error) {
	entries, err := os.ReadDir(dirs.Snapshots(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []*Snapshot
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue // incomplete, or being removed
		}
		s, err := Open(dirs, key, e.Name())
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *Snapshot) int { return a.Time.Compare(b.Time) })
	return all, nil
}

// Layers returns the layers of all nodes in the snapshots of this host.
func Layers(dirs host.Dirs) ([]string, error) {
	sites, err := filepath.Glob(filepath.Dir(dirs.Snapshots("*")))
	var digests []string
	for _, at := range sites {
		some, badly := List(dirs, filepath.Base(at))
		err = errors.Join(err, badly)
		for _, s := range some {
			for _, n := range s.Nodes {
				digests = append(digests, n.Record.Layers()...)
			}
		}
	}
	return digests, err
}

// Remove removes a snapshot permanently.
func Remove(dirs host.Dirs, key, id string) error {
	at := filepath.Join(dirs.Snapshots(key), id)
	if _, err := os.Stat(at); err != nil || strings.HasPrefix(id, ".") || strings.Contains(id, "/") || id == "" {
		return absent(key, id)
	}
	if under, nodes, err := Interrupted(dirs, key); err != nil || under == id {
		return errors.Join(err, interruptedProblem(dirs, key, id, nodes))
	}
	gone := filepath.Join(dirs.Snapshots(key), "."+id+"-gone")
	if err := erase(gone); err != nil {
		return err
	}
	if err := os.Rename(at, gone); err != nil {
		return err
	}
	return erase(gone)
}

// Sweep removes what killed runs left beside the snapshots. Only the holder of the site's lock may
// call it.
func Sweep(dirs host.Dirs, key string) error {
	left, err := filepath.Glob(filepath.Join(dirs.Snapshots(key), ".*"))
	for _, path := range left {
		if !strings.HasSuffix(path, readySuffix) {
			err = errors.Join(err, erase(path))
		}
	}
	return errors.Join(err, sweepStaged(dirs, key))
}

// sweepStaged removes what a killed run staged beside volumes before it started to exchange them.
// After that, there is a record, and the directories beside the volumes may be the former ones.
func sweepStaged(dirs host.Dirs, key string) error {
	if id, _, err := Interrupted(dirs, key); err != nil || id != "" {
		return err
	}
	// -aside, and -aside-new of an incomplete clone
	left, err := filepath.Glob((&dirSwap{Path: filepath.Join(dirs.Volumes(key), "*", "*")}).stagingPath() + "*")
	for _, path := range left {
		err = errors.Join(err, volume.Erase(path))
	}
	return err
}

// erase removes the directory of a snapshot. It removes each volume first, because some file
// systems can remove a volume at once.
func erase(dir string) error {
	kept, err := filepath.Glob(filepath.Join(dir, "volumes", "*", "*"))
	for _, path := range kept {
		err = errors.Join(err, volume.Erase(path))
	}
	return errors.Join(err, tree.RemoveAll(dir))
}
