package nodedir

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
	"orrery/internal/tree/rawfile"
)

// A Record is everything that is recorded about a node.
type Record struct {
	spec.Node
	Slot       int       `json:"slot"` // number of the node's range of user ids on this host
	Configured bool      `json:"configured"`
	Proven     string    `json:"proven,omitempty"`
	ProvenAt   time.Time `json:"proven_at,omitzero"`
	Active     bool      `json:"active,omitempty"` // what only a live node does has been done, or may have been
	// Doubt lists the networks whose interfaces are being plugged or unplugged, so that each may be
	// there or not.
	Doubt []string `json:"doubt,omitempty"`
}

const recordFile = "node.json"

// Read reads the record of a node.
func (d Dir) Read() (*Record, error) {
	text, err := readRecord(d)
	if err != nil {
		return nil, err
	}
	r := &Record{}
	return r, json.Unmarshal(text, r)
}

func readRecord(d Dir) ([]byte, error) { return rawfile.ReadFile(d.File(recordFile)) }

// Write writes the record of a node.
func (d Dir) Write(r *Record) error { return d.write(recordFile, r) }

// write stores a file of a node as JSON, whole or not at all. It does not sync the disk, because
// after a power cut the node can be recreated.
func (d Dir) write(name string, x any) error {
	text, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return err
	}
	temporary := d.File("." + name)
	if err := os.WriteFile(temporary, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, d.File(name))
}

// WriteMounts records which volumes the node sees, or may see while a run changes them.
func (d Dir) WriteMounts(r *Record, mounts []spec.Mount) error {
	if slices.Equal(r.Mounts, mounts) {
		return nil
	}
	r.Mounts = slices.Clone(mounts)
	return d.Write(r)
}

// Record reads the record of a node, which must exist and belong to this host.
func (n *Nodes) Record(ref engine.Ref) (*Record, error) {
	return recordOf(n.Dir(ref), ref, Dir.Read)
}

func recordOf(d Dir, ref engine.Ref, read func(Dir) (*Record, error)) (*Record, error) {
	r, err := read(d)
	if g, given := d.Move().MovedTo(); given {
		return nil, problem.New(problem.Surprise, "node %s has moved to host %s", ref.Name, g.To).At(d.Path()).
			Try("orrery up completes the move")
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, problem.New(problem.Surprise, "node %s (id %d) does not exist", ref.Name, ref.ID).At(d.Path()).
			Try("plan again")
	case err != nil:
		return nil, problem.New(problem.Failed, "node %s: its record cannot be read", ref.Name).At(d.Path()).Because(err).
			Try("orrery up recreates the node")
	}
	return r, nil
}

// SetProgress records how far a node has come.
func (n *Nodes) SetProgress(_ context.Context, ref engine.Ref, m engine.Progress) error {
	r, err := n.Record(ref)
	if err != nil {
		return err
	}
	r.Configured, r.Config, r.Proven, r.ProvenAt, r.Active = m.Configured, m.Config, m.Proven, m.ProvenAt, m.Active
	return n.Dir(ref).Write(r)
}

// Found is a node's directory with its record, or with what can be told without one.
type Found struct {
	*Record
	Whole bool
}

// All returns the nodes of a site. A node whose record cannot be read is not Whole.
func All(dirs host.Dirs, of string) ([]Found, error) { return findNodes(dirs, of, "", false, Dir.Read) }

// findNodes returns the nodes of a site that are on this host, or with away those that were given away.
// It returns nodes of one engine, or of all engines if engine is "".
func findNodes(dirs host.Dirs, of, engine string, away bool, read func(Dir) (*Record, error)) ([]Found, error) {
	entries, err := os.ReadDir(dirs.Nodes(of))
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
		d := Of(dirs, of, id)
		if made := d.engineName(); engine != "" && made != "" && made != engine { // its record need not be read
			continue
		}
		if _, given := d.Move().MovedTo(); given != away {
			continue
		}
		r, err := read(d)
		if err != nil {
			r = &Record{Node: spec.Node{ID: id, Name: "node-" + e.Name(), Site: of, Engine: cmp.Or(d.engineName(), site.LXC)}}
		}
		if engine != "" && r.Engine != engine {
			continue
		}
		all = append(all, Found{r, err == nil})
	}
	return all, nil
}

// engineFile names the engine of a node, which has to remove the node even if the record is lost.
const engineFile = "engine"

// engineName returns the engine that made the node, or "" if engineFile does not say so. In that case the
// record names the engine, or it is the oldest engine.
func (d Dir) engineName() string {
	text, err := tree.ReadFile(d.File(engineFile), 100)
	if err != nil || !slices.Contains(site.Engines, string(text)) {
		return ""
	}
	return string(text)
}

// Found returns the engine's nodes of a site, or of all sites if of is "".
func (n *Nodes) Found(of string) ([]Found, error) {
	sites := []string{of}
	if of == "" {
		entries, err := os.ReadDir(filepath.Dir(n.Dirs.Site("any")))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		sites = nil
		for _, e := range entries {
			sites = append(sites, e.Name())
		}
	}
	var all []Found
	for _, name := range sites {
		found, err := findNodes(n.Dirs, name, n.Engine, false, Dir.Read)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}
