package release

import (
	"slices"

	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// withVolumesOf returns a node with the volumes of another.
func withVolumesOf(n spec.Node, as spec.Node) spec.Node {
	n.Mounts = as.Mounts
	return n
}

// lacksVolumes reports whether a node lacks volumes that only one node can have. It was live before, and
// another node has them now.
func lacksVolumes(n *spec.Node) bool {
	return slices.ContainsFunc(n.Mounts, func(m spec.Mount) bool { return m.Copy == spec.NoCopy })
}

// isMisplaced reports whether a link of a node is not where it must be.
func isMisplaced(current *observe.Node, shall *spec.Node) bool {
	return current.Staged != shall.Staged ||
		!slices.Equal(spec.WithoutTraffic(current.NICs), spec.WithoutTraffic(shall.NICs))
}

// hasLiveOnlyWork reports whether the roles of a node do something on live nodes only.
func hasLiveOnlyWork(s *site.Site, n *site.Node) bool {
	return slices.ContainsFunc(s.RolesOf(n), (*site.Role).ActiveOnly)
}
