package nodedir

import (
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/observe"
)

// TestSick: the result of a check is seen until the node's health is proven, or a later check finds
// the node healthy.
func TestSick(t *testing.T) {
	mayChown(t)
	n := nodesIn(t.TempDir())
	must(t, n.Create(t.Context(), privileged(1, "one")))
	d, at := n.Dir(engine.Ref{Site: "s", ID: 1}), time.Now().UTC()
	sick := func() bool {
		nodes, err := n.Observe("s", func(*observe.Node) {})
		must(t, err)
		return nodes[0].Sick != nil && nodes[0].Sick.Found == "tcp 80" && nodes[0].Sick.At.Equal(at)
	}
	must(t, d.StoreSickness(&observe.HealthFailure{At: at, Found: "tcp 80"}))
	if !sick() {
		t.Error("what was found is not seen")
	}
	must(t, n.Mark(t.Context(), engine.Ref{Site: "s", ID: 1},
		engine.Progress{Configured: true, Proven: "p", ProvenAt: at.Add(time.Second)}))
	if sick() {
		t.Error("it is seen although the node was healthy since")
	}
	at = at.Add(time.Minute)
	proven := at.Add(-time.Minute + time.Second)
	must(t, d.StoreSickness(&observe.HealthFailure{At: at, Found: "tcp 80", Proven: proven}))
	if !sick() {
		t.Error("what was found after the proof is not seen")
	}
	must(t, d.StoreSickness(&observe.HealthFailure{At: at, Found: "tcp 80"}))
	must(t, d.StoreSickness(nil))
	if sick() {
		t.Error("it is seen although a later look found the node healthy")
	}
}

// TestSickByClock: the later result counts, even if the clock was ahead for one of the two.
func TestSickByClock(t *testing.T) {
	mayChown(t)
	n := nodesIn(t.TempDir())
	must(t, n.Create(t.Context(), privileged(1, "one")))
	ref, now := engine.Ref{Site: "s", ID: 1}, time.Now().UTC().Truncate(time.Second)
	d, ahead := n.Dir(ref), now.AddDate(1, 0, 0)
	prove := func(at time.Time) {
		must(t, n.Mark(t.Context(), ref, engine.Progress{Configured: true, Proven: "p", ProvenAt: at}))
	}
	sick := func() bool {
		nodes, err := n.Observe("s", func(*observe.Node) {})
		must(t, err)
		return nodes[0].Sick != nil
	}
	prove(ahead)
	must(t, d.StoreSickness(&observe.HealthFailure{At: now, Found: "tcp 80", Proven: ahead}))
	if !sick() {
		t.Error("what was found is not seen, because the clock was ahead when the health was proven")
	}
	must(t, d.StoreSickness(&observe.HealthFailure{At: ahead, Found: "tcp 80", Proven: ahead}))
	prove(now)
	if sick() {
		t.Error("what was found while the clock was ahead is seen although the node was healthy since")
	}
}
