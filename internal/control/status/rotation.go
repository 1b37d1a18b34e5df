package status

import (
	"maps"
	"slices"
)

// A Rotation is a rotation of a secret that has not reached a node.
type Rotation struct {
	Secret     string `json:"secret"`
	Generation int    `json:"generation"` // that the node has
	Newest     int    `json:"newest"`
	On         int    `json:"on"` // number of nodes that have the newest
	Of         int    `json:"of"` // number of nodes that read the secret
}

// markRotations notes which live nodes have an older generation of a secret than other nodes. The nodes'
// records say that; the hosts are not asked.
func (all *Status) markRotations() {
	newest, on, of := map[string]int{}, map[string]int{}, map[string]int{}
	for _, n := range all.there {
		if n == nil || n.Staged {
			continue
		}
		for name := range n.Config.Secrets {
			of[name]++
			switch g := n.Config.Generation(name); {
			case g > newest[name]:
				newest[name], on[name] = g, 1
			case g == newest[name]:
				on[name]++
			}
		}
	}
	for i, n := range all.there {
		if n == nil || n.Staged {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(n.Config.Secrets)) {
			if g := n.Config.Generation(name); g < newest[name] {
				all.Nodes[i].Rotations = append(all.Nodes[i].Rotations, Rotation{name, g, newest[name], on[name], of[name]})
			}
		}
	}
}
