package local

import (
	"context"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/observe"
)

// besides is an engine whose nodes have memory other than the host's.
type besides struct{ engine.Engine }

func (besides) Capabilities() observe.Capabilities { return observe.Capabilities{Keep: true} }

func (besides) Pool(context.Context) *observe.MemoryPool {
	return &observe.MemoryPool{Total: 2, Free: 1}
}

// TestPool: the plan is told how much memory the nodes of a wanted engine can have.
func TestPool(t *testing.T) {
	if can := probedCapabilities(t.Context(), besides{}); !can.Keep || can.Pool == nil ||
		*can.Pool != (observe.MemoryPool{Total: 2, Free: 1}) {
		t.Errorf("%+v", can)
	}
}
