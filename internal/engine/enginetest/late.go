package enginetest

import (
	"context"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/site/spec"
)

// stopLate stops a node with a deadline that has already passed. The engine kills the node, and
// then waits for the lock of the host's networks, which another run may hold.
func stopLate(s *suite, n *spec.Node) {
	s.Helper()
	if s.Kernel {
		// Tests of other packages may hold the lock now.
		l, err := host.WaitLock(s.Context(), "/run/orrery/network.lock", host.Exclusive,
			"the lock of this machine's networks")
		s.must(err)
		time.AfterFunc(500*time.Millisecond, l.Release)
	}
	ctx, cancel := context.WithTimeout(s.Context(), 0)
	defer cancel()
	s.must(s.Engine.Stop(ctx, engine.RefOf(n)))
	s.wantState(n, observe.Stopped)
}
