// Package drift finds changes on a running node, and restores what its layers contain.
//
// A change is a difference from what the node's layers and roles created. The package looks from
// the host at the private layer, where overlayfs stores what the node has changed and deleted, and
// at the node's root. It runs only systemctl(1) in the node. The output of that, and all files of
// the node, are untrusted. So they are read only up to a limit, and unknown words are not passed
// on.
package drift

import (
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/tree"
)

// walkBounds limits how much of a private layer is examined.
var walkBounds = tree.Bounds{Depth: 256, Names: 1 << 20, All: 2 << 20, Text: 256 << 20}

// maxFound limits how many changes are reported for one node.
const maxFound = 100

// An IgnoreList contains the paths of files and directories that a node may change freely.
type IgnoreList []string

// has reports whether a path is free.
func (f IgnoreList) has(name string) bool {
	name = "/" + relative(name)
	return slices.ContainsFunc(f, func(free string) bool { return name == free || strings.HasPrefix(name, free+"/") })
}

// A collector collects the drift of one node.
type collector struct {
	node string
	all  []observe.Drift
}

func (f *collector) full() bool { return len(f.all) >= maxFound }

func (f *collector) add(kind observe.DriftKind, how observe.DriftState, subject, role, want, found string) {
	if !f.full() {
		f.all = append(f.all, observe.Drift{Kind: kind, How: how, Node: f.node, Subject: subject, Role: role, Want: want,
			Found: found})
	}
}
