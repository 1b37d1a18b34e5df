package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/host"
	"orrery/internal/role"
)

// A run is the files with which steps in progress on a site can be undone, and how far nodes have
// come. They are written before a step changes anything, so that another process can undo the steps
// of one that was killed. The process that completes the run, or starts the next one, removes them.
type run struct{ dir string }

func runOf(dirs host.Dirs, key string) run { return run{filepath.Join(dirs.Site(key), "undo")} }

// A progress is how far a node has come in a run, beyond what its record says.
type progress struct {
	// Configured is whether the node was configured before its services were stopped or started, or
	// nil if none were.
	Configured *bool `json:"configured,omitempty"`
	Injected   bool  `json:"injected,omitempty"` // its files were written before it booted
	Booting    bool  `json:"booting,omitempty"`  // it was started, and its boot has not been seen to end
}

// progress returns how far a node has come.
func (r run) progress(id int) (p progress, err error) {
	err = r.read(filepath.Join(strconv.Itoa(id), "progress.json"), &p)
	return p, err
}

// note records how far a node has come.
func (r run) note(id int, change func(*progress)) error {
	old, err := r.progress(id)
	if err != nil {
		return err
	}
	updated := old
	if change(&updated); updated == old {
		return nil
	}
	return r.write(filepath.Join(strconv.Itoa(id), "progress.json"), updated)
}

// startSaving makes the run keep files of a node from now on.
func (r run) startSaving(id int) error { return r.make(filepath.Join(strconv.Itoa(id), "files")) }

// saveFiles adds former files of a node.
func (r run) saveFiles(id int, s role.Saved) error {
	dir := filepath.Join(strconv.Itoa(id), "files")
	entries, err := os.ReadDir(filepath.Join(r.dir, dir))
	if err != nil {
		return err
	}
	return r.write(filepath.Join(dir, fmt.Sprintf("%06d.json", len(entries))), s)
}

// savedFiles returns the former files of a node, the latest first. Known is false if startSaving was not
// called.
func (r run) savedFiles(id int) (all []role.Saved, known bool, err error) {
	dir := filepath.Join(strconv.Itoa(id), "files")
	entries, err := os.ReadDir(filepath.Join(r.dir, dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") { // it is incomplete
			continue
		}
		var s role.Saved
		if err := r.read(filepath.Join(dir, e.Name()), &s); err != nil {
			return nil, false, err
		}
		all = append(all, s)
	}
	slices.Reverse(all)
	return all, true, err
}

// saveNames records the former names files of nodes, by path.
func (r run) saveNames(files map[string][]byte) error { return r.write("names.json", files) }

// names returns what saveNames has recorded.
func (r run) names() (files map[string][]byte, err error) {
	err = r.read("names.json", &files)
	return files, err
}

// end removes the files of the run.
func (r run) end() error { return os.RemoveAll(r.dir) }

// make makes a directory that only root can read. Engines must be able to search its parent.
func (r run) make(dir string) error {
	if err := os.MkdirAll(filepath.Dir(r.dir), 0o755); err != nil {
		return err
	}
	return os.MkdirAll(filepath.Join(r.dir, dir), 0o700)
}

func (r run) write(name string, x any) error {
	text, err := json.Marshal(x)
	if err != nil {
		return err
	}
	if err := r.make(filepath.Dir(name)); err != nil {
		return err
	}
	return writeUnsynced(r.dir, name, text, 0o600)
}

// read reads what write has written. If there is no such file, it leaves into unchanged.
func (r run) read(name string, into any) error {
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
