package apply

import (
	"context"

	"orrery/internal/observe"
)

// OwnedNodes is the nodes of a site on a host, and their owner.
type OwnedNodes struct {
	Origin string         `json:"origin,omitempty"` // the id of the site, or "" if it is not on record
	Nodes  []observe.Node `json:"nodes"`
}

// An InspectMode says how closely nodes are inspected.
type InspectMode bool

// The two modes.
const (
	InspectFull InspectMode = false // links, limits and disks as they are
	// only which nodes exist and whether they run; faster, for commands that connect to a node
	InspectBrief InspectMode = true
)

// ListNodes returns the nodes that exist, by host, for commands that use or list them. Like Observe,
// it refuses hosts that have nodes of another site of this name.
func (f *Fleet) ListNodes(ctx context.Context, look InspectMode) ([][]observe.Node, error) {
	all, seen := make([][]observe.Node, len(f.All)), make([]observe.Host, len(f.All))
	err := f.ForEach(func(i int, h *HostClient) error {
		present, err := h.Nodes.WithOwner(ctx, look)
		all[i], seen[i] = present.Nodes, observe.Host{Name: h.Name, Origin: present.Origin, Nodes: present.Nodes}
		return err
	})
	if err == nil {
		err = f.checkOwner(seen)
	}
	recordLocations(f, seen)
	return all, err
}
