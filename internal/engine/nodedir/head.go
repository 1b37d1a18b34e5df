package nodedir

import (
	"encoding/json"
	"time"

	"orrery/internal/engine"
	"orrery/internal/site/spec"
)

// A head is what of a record tells which node it is, how far it has come, and what may be done in
// it. In a program that has decoded no record yet, it takes a tenth of the time: encoding/json
// first learns all types within a record, which are many.
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

// readHead reads the record of a node, of which it returns what a head has.
func (d Dir) readHead() (*Record, error) {
	text, err := textOf(d)
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

// Head reads of the record of a node that is to be there who it is: Site, Name, ID, Release,
// Staged, Engine, Privileged, Syscalls, and all that is not of spec.Node. It is for callers that
// only enter the node.
func (n *Nodes) Head(ref engine.Ref) (*Record, error) {
	return recordOf(n.Dir(ref), ref, Dir.readHead)
}
