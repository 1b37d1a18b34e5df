// Package drift finds changes on a running node: what differs from what its layers and roles made;
// it restores what the layers contain.
//
// It looks from the host: at the private layer, in which overlayfs keeps what the node has deleted
// and changed of its layers, and at the root of the node. Nothing is run in the node but one
// systemctl(1), and what that says, as all that is found there, is taken in bounded amounts and
// only in words that are known.
package drift

import (
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/tree"
)

// most bounds how much of a private layer is looked at.
var most = tree.Bounds{Depth: 256, Names: 1 << 20, All: 2 << 20, Text: 256 << 20}

// maxFound is how much is told of one node.
const maxFound = 100

// A Free list has the paths, files or directories, that a node may change as it likes.
type Free []string

// has reports whether a path is free.
func (f Free) has(name string) bool {
	name = "/" + relative(name)
	return slices.ContainsFunc(f, func(free string) bool { return name == free || strings.HasPrefix(name, free+"/") })
}

// A finding collects what has drifted of one node.
type finding struct {
	node string
	all  []observe.Drift
}

func (f *finding) full() bool { return len(f.all) >= maxFound }

func (f *finding) add(kind observe.DriftKind, how observe.DriftHow, subject, role, want, found string) {
	if !f.full() {
		f.all = append(f.all, observe.Drift{Kind: kind, How: how, Node: f.node, Subject: subject, Role: role, Want: want,
			Found: found})
	}
}
