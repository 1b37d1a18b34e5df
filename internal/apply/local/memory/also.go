package memory

import (
	"context"
	"slices"

	"orrery/internal/engine"
	"orrery/internal/observe"
)

// AddEngine adds a second engine to the host. Its capabilities are can, limited to those of the host's
// own engine.
func (h *Host) AddEngine(name string, can observe.Capabilities) {
	own := bootEngine{h.Engine}
	h.Worker.Engines["fake"] = namedEngine{bootEngine: own, name: "fake",
		can: func() observe.Capabilities { return h.Can }}
	h.Worker.Engines[name] = namedEngine{bootEngine: own, name: name, can: func() observe.Capabilities {
		both := can
		both.LiveLimits, both.MoveNIC = can.LiveLimits && h.Can.LiveLimits, can.MoveNIC && h.Can.MoveNIC
		both.Remount, both.Keep = can.Remount && h.Can.Remount, can.Keep && h.Can.Keep
		return both
	}}
}

// A namedEngine of an engine in memory is an engine that has only the nodes with its name.
type namedEngine struct {
	bootEngine
	name string
	can  func() observe.Capabilities
}

var _ engine.Replacer = namedEngine{}

// Capabilities returns what the engine can do.
func (p namedEngine) Capabilities() observe.Capabilities { return p.can() }

// List returns the nodes of this engine.
func (p namedEngine) List(ctx context.Context, site string) ([]observe.Node, error) {
	all, err := p.bootEngine.List(ctx, site)
	return slices.DeleteFunc(all, func(n observe.Node) bool { return n.Engine != p.name }), err
}
