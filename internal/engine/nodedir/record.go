// Package nodedir keeps node.json beside each node: what it was made from and how far it has come. The records
// of a host are the truth about it; there is no other database.
package nodedir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"orrery/internal/site/spec"
	"orrery/internal/tree"
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

// Read reads the record in a node's directory.
func Read(dir string) (*Record, error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil, err
	}
	r := &Record{}
	return r, json.Unmarshal(text, r)
}

// Write writes the record into a node's directory, whole or not at all. It does not wait for the disk: after a
// power cut the node is at worst made anew.
func Write(dir string, r *Record) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	temporary := filepath.Join(dir, "."+file)
	if err := os.WriteFile(temporary, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, file))
}

// Found is a node's directory with its record, or what is known of it without one.
type Found struct {
	Dir    string
	Record *Record
	Whole  bool
}

// All finds the nodes in a site's directory of nodes. A record that cannot be read gives a node that is not whole.
func All(nodes string) ([]Found, error) {
	entries, err := os.ReadDir(nodes)
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
		dir := filepath.Join(nodes, e.Name())
		r, err := Read(dir)
		whole := err == nil
		if !whole {
			r = &Record{Node: spec.Node{ID: id, Name: "node-" + e.Name(), Site: filepath.Base(filepath.Dir(nodes))}}
		}
		all = append(all, Found{dir, r, whole})
	}
	return all, nil
}

// Sweep removes what killed runs left beside the nodes: directories whose names begin with a dot.
func Sweep(nodes string) error {
	entries, err := os.ReadDir(nodes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			err = errors.Join(err, tree.RemoveAll(filepath.Join(nodes, e.Name())))
		}
	}
	return err
}
