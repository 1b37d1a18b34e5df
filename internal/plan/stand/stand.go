// Package stand returns how nodes differ from their declaration, live or in quarantine. It is pure.
package stand

import (
	"slices"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// AsLive returns a node as it is when it is live: on the site's networks, with its volumes.
func AsLive(n spec.Node) spec.Node {
	n.Staged = false
	n.NICs = slices.Clone(n.NICs)
	for i := range n.NICs {
		n.NICs[i].Bridge = site.BridgeName(n.Site, n.NICs[i].Network)
	}
	n.Mounts = withoutDuplicates(n.Mounts)
	for i := range n.Mounts {
		n.Mounts[i].Copy, n.Mounts[i].Release = "", 0
	}
	return n
}

// AsRetired returns a node as it is when it is no longer live: in quarantine, without the volumes
// that only one node can have.
func AsRetired(n spec.Node) spec.Node {
	n.Staged = true
	n.NICs = slices.Clone(n.NICs)
	for i := range n.NICs {
		n.NICs[i].Bridge = site.BridgeName(site.Quarantine(n.Site, n.Release), n.NICs[i].Network)
	}
	n.Mounts = withoutDuplicates(n.Mounts)
	for i := range n.Mounts {
		if m := &n.Mounts[i]; m.Exclusive && m.Copy == "" {
			m.Copy, m.Release = spec.NoCopy, n.Release
		}
	}
	return n
}

// withoutDuplicates returns volumes with duplicates removed. A run that was killed while it exchanged volumes
// has recorded the node's old volumes and, after them, the new ones. The later entry is kept.
func withoutDuplicates(mounts []spec.Mount) []spec.Mount {
	var all []spec.Mount
	for i, m := range mounts {
		again := func(later spec.Mount) bool { return later.Volume == m.Volume && later.Path == m.Path }
		if !slices.ContainsFunc(mounts[i+1:], again) {
			all = append(all, m)
		}
	}
	return all
}
