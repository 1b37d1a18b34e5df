package fake

import (
	"fmt"
	"slices"

	"orrery/internal/engine"
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// running reports whether a node's links and volumes are in use.
func (n *node) running() bool { return n.state == observe.Running || n.state == observe.Frozen }

// alone reports what keeps a node from running as specified beside the other nodes of an engine,
// which must be locked: another instance of it that is live on the same networks, or that may have
// an exclusive volume that it wants.
func alone(nodes map[engine.Ref]*node, n *spec.Node) error {
	for ref, other := range nodes {
		if ref == engine.RefOf(n) || ref.Site != n.Site || ref.Name != n.Name || !other.running() {
			continue
		}
		if live(n) && live(&other.spec) {
			return fmt.Errorf("node %s is live twice: as id %d and as id %d", n.Name, other.spec.ID, n.ID)
		}
		for _, m := range n.Mounts {
			if exclusive(m) && slices.ContainsFunc(other.spec.Mounts, func(its spec.Mount) bool {
				return exclusive(its) && volumeOf(&other.spec, its) == volumeOf(n, m)
			}) {
				return fmt.Errorf("node %s: id %d and id %d have volume %s at the same time", n.Name, other.spec.ID, n.ID, m.Volume)
			}
		}
	}
	return nil
}

// exclusive reports whether what is mounted is not for two: the volume of a node itself, no copy.
func exclusive(m spec.Mount) bool { return m.Exclusive && !m.Shared && m.Copy == "" }

// live reports whether any link of a node is on the site's own networks.
func live(n *spec.Node) bool {
	return slices.ContainsFunc(n.NICs, func(nic spec.NIC) bool {
		return nic.Bridge == site.BridgeName(n.Site, nic.Network)
	})
}

// wholly reports whether all links of a node are.
func wholly(n *spec.Node) bool {
	return !slices.ContainsFunc(n.NICs, func(nic spec.NIC) bool {
		return nic.Bridge != site.BridgeName(n.Site, nic.Network)
	})
}
