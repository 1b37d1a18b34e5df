package memory

import (
	"context"
	"slices"

	"orrery/internal/engine"
	"orrery/internal/observe"
)

// Also adds a second engine to the host. Its capabilities are can, limited to those of the host's
// own engine.
func (h *Host) Also(name string, can observe.Capabilities) {
	own := booting{h.Engine}
	h.Worker.Engines["fake"] = part{booting: own, name: "fake", can: func() observe.Capabilities { return h.Can }}
	h.Worker.Engines[name] = part{booting: own, name: name, can: func() observe.Capabilities {
		both := can
		both.LiveLimits, both.MoveNIC = can.LiveLimits && h.Can.LiveLimits, can.MoveNIC && h.Can.MoveNIC
		both.Remount, both.Keep = can.Remount && h.Can.Remount, can.Keep && h.Can.Keep
		return both
	}}
}

// A part of an engine in memory is an engine that has only the nodes with its name.
type part struct {
	booting
	name string
	can  func() observe.Capabilities
}

var _ engine.Keeper = part{}

// Capabilities returns what the engine can do.
func (p part) Capabilities() observe.Capabilities { return p.can() }

// List returns the nodes of this engine.
func (p part) List(ctx context.Context, site string) ([]observe.Node, error) {
	all, err := p.booting.List(ctx, site)
	return slices.DeleteFunc(all, func(n observe.Node) bool { return n.Engine != p.name }), err
}
