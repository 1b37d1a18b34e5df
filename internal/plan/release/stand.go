package release

import (
	"slices"

	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// mounting returns a node with the volumes of another.
func mounting(n spec.Node, as spec.Node) spec.Node {
	n.Mounts = as.Mounts
	return n
}

// bereft reports whether a node lacks volumes that only one node can have. It was live before, and
// another node has them now.
func bereft(n *spec.Node) bool {
	return slices.ContainsFunc(n.Mounts, func(m spec.Mount) bool { return m.Copy == spec.NoCopy })
}

// elsewhere reports whether a link of a node is not where it must be.
func elsewhere(current *observe.Node, shall *spec.Node) bool {
	return current.Staged != shall.Staged || !slices.Equal(current.NICs, shall.NICs)
}

// liveOnly reports whether the roles of a node do something on live nodes only.
func liveOnly(s *site.Site, n *site.Node) bool {
	return slices.ContainsFunc(s.RolesOf(n), (*site.Role).LiveOnly)
}
