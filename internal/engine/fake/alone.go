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

// checkExclusive returns an error if another node keeps n from running as specified. That is another
// instance of n that is live on the same networks, or that may have an exclusive volume that
// n wants. The engine must be locked.
func checkExclusive(nodes map[engine.Ref]*node, n *spec.Node) error {
	for ref, other := range nodes {
		if ref == engine.RefOf(n) || ref.Site != n.Site || ref.Name != n.Name || !other.running() {
			continue
		}
		if isLive(n) && isLive(&other.spec) {
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

// exclusive reports whether only one node may have the volume of a mount. Copies and shared volumes
// are not exclusive.
func exclusive(m spec.Mount) bool { return m.Exclusive && !m.Shared && m.Copy == "" }

// isLive reports whether any link of a node is on the site's own networks.
func isLive(n *spec.Node) bool {
	return slices.ContainsFunc(n.NICs, func(nic spec.NIC) bool {
		return nic.Bridge == site.BridgeName(n.Site, nic.Network)
	})
}

// allLive reports whether all links of a node are on the site's own networks.
func allLive(n *spec.Node) bool {
	return !slices.ContainsFunc(n.NICs, func(nic spec.NIC) bool {
		return nic.Bridge != site.BridgeName(n.Site, nic.Network)
	})
}
