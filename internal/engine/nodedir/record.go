package nodedir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"orrery/internal/host"
	"orrery/internal/site/spec"
)

// A Record is what is known of a node.
type Record struct {
	spec.Node
	Slot       int       `json:"slot"` // its range of user ids on this host
	Configured bool      `json:"configured"`
	Proven     string    `json:"proven,omitempty"`
	ProvenAt   time.Time `json:"proven_at,omitzero"`
	Active     bool      `json:"active,omitempty"` // what only a live node does has been done, or may have been
}

const file = "node.json"

// Read reads the record of a node.
func (d Dir) Read() (*Record, error) {
	text, err := os.ReadFile(d.File(file))
	if err != nil {
		return nil, err
	}
	r := &Record{}
	return r, json.Unmarshal(text, r)
}

// Write writes the record of a node, whole or not at all. It does not wait for the disk: after a power cut the node is at worst made
// anew.
func (d Dir) Write(r *Record) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	temporary := d.File("." + file)
	if err := os.WriteFile(temporary, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, d.File(file))
}

// Found is the record of a node that is on the host, or what is known of it without one.
type Found struct {
	*Record
	Whole bool
}

// All finds the nodes of a site. A record that cannot be read gives a node that is not whole.
func All(dirs host.Dirs, site string) ([]Found, error) {
	entries, err := os.ReadDir(dirs.Nodes(site))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Found
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil || !e.IsDir() {
			continue
		}
		r, err := Of(dirs, site, id).Read()
		if err != nil {
			r = &Record{Node: spec.Node{ID: id, Name: "node-" + e.Name(), Site: filepath.Base(filepath.Dir(dirs.Nodes(site)))}}
		}
		all = append(all, Found{r, err == nil})
	}
	return all, nil
}
