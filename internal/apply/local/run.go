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

// A run is what is on disk of the steps that are being done on a site: what undoing them needs, and
// how far nodes have come. It is written before a step changes anything, so that another process
// can undo what one has done that was killed; whoever begins the next run, or has brought this one
// to a good end, removes it.
type run struct{ dir string }

func runOf(dirs host.Dirs, key string) run { return run{filepath.Join(dirs.Site(key), "undo")} }

// A progress is how far a node has come in a run, apart from what is on record of it beyond that.
type progress struct {
	// Configured: whether it had been, before services of it were stopped or started; nil: none were.
	Configured *bool `json:"configured,omitempty"`
	Injected   bool  `json:"injected,omitempty"` // its files were there before it booted
	Booting    bool  `json:"booting,omitempty"`  // it was started, and nobody has seen it at the end of its boot
}

// progress tells how far a node has come.
func (r run) progress(id int) (p progress, err error) {
	err = r.read(filepath.Join(strconv.Itoa(id), "progress.json"), &p)
	return p, err
}

// note takes down how far a node has come.
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

// keepsFiles lets files of a node be kept from now on.
func (r run) keepsFiles(id int) error { return r.make(filepath.Join(strconv.Itoa(id), "files")) }

// keep adds files of a node as they were.
func (r run) keep(id int, s role.Saved) error {
	dir := filepath.Join(strconv.Itoa(id), "files")
	entries, err := os.ReadDir(filepath.Join(r.dir, dir))
	if err != nil {
		return err
	}
	return r.write(filepath.Join(dir, fmt.Sprintf("%06d.json", len(entries))), s)
}

// kept returns the files of a node as they were, what was kept last first; known is false if none
// were to be kept.
func (r run) kept(id int) (all []role.Saved, known bool, err error) {
	dir := filepath.Join(strconv.Itoa(id), "files")
	entries, err := os.ReadDir(filepath.Join(r.dir, dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") { // it was not finished
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

// keepNames takes down what nodes were told of one another, by path.
func (r run) keepNames(files map[string][]byte) error { return r.write("names.json", files) }

// names returns what keepNames has recorded.
func (r run) names() (files map[string][]byte, err error) {
	err = r.read("names.json", &files)
	return files, err
}

// end forgets it all.
func (r run) end() error { return os.RemoveAll(r.dir) }

// make makes a directory that is nobody else's to read. The one above is for engines to go through.
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
	return quick(r.dir, name, text, 0o600)
}

// read reads what write wrote; what is not there leaves into as it is.
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
