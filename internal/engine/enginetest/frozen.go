package enginetest

import (
	"context"
	"sync/atomic"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/site/spec"
)

func freezer(s *suite) engine.Freezer {
	s.Helper()
	f, ok := s.Engine.(engine.Freezer)
	if !ok {
		s.Skip("the engine is no Freezer")
	}
	return f
}

// freeze: a frozen node does nothing, and continues when it is thawed.
func freeze(s *suite, n *spec.Node) {
	f := freezer(s)
	ref := engine.RefOf(n)
	s.must(f.Thaw(s.Context(), ref)) // thawing a node that is not frozen has no effect
	s.wantState(n, observe.Running)
	ticks := countOutput(s, ref)
	for range 2 {
		s.must(f.Freeze(s.Context(), ref))
		s.wantState(n, observe.Frozen)
	}
	if s.Kernel {
		time.Sleep(20 * time.Millisecond) // printed output may still arrive
		before := ticks.Load()
		time.Sleep(100 * time.Millisecond)
		if now := ticks.Load(); now != before || now == 0 {
			s.Errorf("a frozen node counts on from %d to %d", before, now)
		}
	}
	for range 2 {
		s.must(f.Thaw(s.Context(), ref))
		s.wantState(n, observe.Running)
	}
	if s.Kernel {
		before := ticks.Load()
		for begun := time.Now(); ticks.Load() == before; time.Sleep(5 * time.Millisecond) {
			if time.Since(begun) > s.within()/2 {
				s.Fatal("a node that was thawed does not go on")
			}
		}
	}
	s.ask(n, "true")
}

// countOutput returns a counter of the bytes that a command in a node prints.
func countOutput(s *suite, ref engine.Ref) *byteCounter {
	t := &byteCounter{}
	if !s.Kernel {
		return t
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Engine.Runner(ref).Run(ctx, host.Command{Args: []string{"sh", "-c", "while :; do echo; sleep 0.01; done"},
			Stdout: t})
	}()
	s.Cleanup(func() { cancel(); <-ended })
	for begun := time.Now(); t.Load() == 0 && time.Since(begun) < s.within()/2; {
		time.Sleep(5 * time.Millisecond)
	}
	return t
}

type byteCounter struct{ atomic.Int64 }

func (t *byteCounter) Write(b []byte) (int, error) {
	t.Add(int64(len(b)))
	return len(b), nil
}

// frozenEnds: a frozen node can be stopped and destroyed, and started again.
func frozenEnds(s *suite) {
	f := freezer(s)
	n := s.running("ice", 71)
	ref := engine.RefOf(n)
	s.must(f.Freeze(s.Context(), ref))
	s.start(n) // Start thaws the node
	s.wantState(n, observe.Running)
	s.ask(n, "true")
	s.must(f.Freeze(s.Context(), ref))
	s.stop(n)
	s.wantState(n, observe.Stopped)
	s.must(f.Thaw(s.Context(), ref))
	s.wantState(n, observe.Stopped)
	wantNotRunning(s, "Freeze", n, f.Freeze(s.Context(), ref))
	s.start(n)
	s.wantState(n, observe.Running)
	s.must(f.Freeze(s.Context(), ref))
	s.destroy(n)
	if _, ok := s.find(n); ok {
		s.Error("it is listed after it was destroyed")
	}
}
