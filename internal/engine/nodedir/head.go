package nodedir

import (
	"encoding/json"
	"time"

	"orrery/internal/engine"
	"orrery/internal/site/spec"
)

// A head is the part of a record that identifies a node, how far it has come, and what may be done
// in it. In a program that has not decoded a record yet, decoding a head takes a tenth of the time,
// because encoding/json first learns all types within a record.
type head struct {
	Site       string    `json:"site"`
	Name       string    `json:"name"`
	ID         int       `json:"id"`
	Release    int       `json:"release"`
	Staged     bool      `json:"staged"`
	Engine     string    `json:"engine"`
	Privileged bool      `json:"privileged"`
	Syscalls   []string  `json:"syscalls"`
	Slot       int       `json:"slot"`
	Configured bool      `json:"configured"`
	Proven     string    `json:"proven"`
	ProvenAt   time.Time `json:"proven_at"`
	Active     bool      `json:"active"`
	Doubt      []string  `json:"doubt"`
}

// readHead reads the record of a node and returns it with only the fields of a head set.
func (d Dir) readHead() (*Record, error) {
	text, err := readRecord(d)
	if err != nil {
		return nil, err
	}
	var h head
	if err := json.Unmarshal(text, &h); err != nil {
		return nil, err
	}
	return &Record{
		Node: spec.Node{
			Site: h.Site, Name: h.Name, ID: h.ID, Release: h.Release, Staged: h.Staged, Engine: h.Engine,
			Privileged: h.Privileged, Syscalls: h.Syscalls,
		},
		Slot: h.Slot, Configured: h.Configured, Proven: h.Proven, ProvenAt: h.ProvenAt, Active: h.Active, Doubt: h.Doubt,
	}, nil
}

// Head reads the part of a node's record that identifies it: Site, Name, ID, Release, Staged,
// Engine, Privileged, Syscalls, and all fields that are not in spec.Node. It is for callers that
// only enter the node.
func (n *Nodes) Head(ref engine.Ref) (*Record, error) {
	return recordOf(n.Dir(ref), ref, Dir.readHead)
}
