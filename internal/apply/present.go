package apply

import (
	"context"

	"orrery/internal/observe"
)

// Present are the nodes of a site that are on a host, and whose they are.
type Present struct {
	Origin string         `json:"origin,omitempty"` // the id of the site; "": that is not on record
	Nodes  []observe.Node `json:"nodes"`
}

// A Look says how closely the nodes of a host are looked at.
type Look bool

// How closely.
const (
	Closely Look = false // their links, limits and disks as they are
	// which there are, and whether they run: for a way into them, which takes less time than a closer
	// look
	Glance Look = true
)

// Present returns the nodes that are there, by host, for who works with them or tells of them.
// Hosts that have nodes of another site of this name are refused, as Observe does.
func (f *Fleet) Present(ctx context.Context, look Look) ([][]observe.Node, error) {
	all, seen := make([][]observe.Node, len(f.All)), make([]observe.Host, len(f.All))
	err := f.Each(func(i int, h *Steered) error {
		present, err := h.Nodes.WithOwner(ctx, look)
		all[i], seen[i] = present.Nodes, observe.Host{Name: h.Name, Origin: present.Origin, Nodes: present.Nodes}
		return err
	})
	if err == nil {
		err = f.recognise(seen)
	}
	saw(f, seen)
	return all, err
}
