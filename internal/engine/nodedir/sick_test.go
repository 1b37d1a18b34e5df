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
	must(t, d.Results().StoreSickness(&observe.HealthFailure{At: at, Found: "tcp 80"}))
	if !sick() {
		t.Error("what was found is not seen")
	}
	must(t, n.SetProgress(t.Context(), engine.Ref{Site: "s", ID: 1},
		engine.Progress{Configured: true, Proven: "p", ProvenAt: at.Add(time.Second)}))
	if sick() {
		t.Error("it is seen although the node was healthy since")
	}
	at = at.Add(time.Minute)
	proven := at.Add(-time.Minute + time.Second)
	must(t, d.Results().StoreSickness(&observe.HealthFailure{At: at, Found: "tcp 80", Proven: proven}))
	if !sick() {
		t.Error("what was found after the proof is not seen")
	}
	must(t, d.Results().StoreSickness(&observe.HealthFailure{At: at, Found: "tcp 80"}))
	must(t, d.Results().StoreSickness(nil))
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
		must(t, n.SetProgress(t.Context(), ref, engine.Progress{Configured: true, Proven: "p", ProvenAt: at}))
	}
	sick := func() bool {
		nodes, err := n.Observe("s", func(*observe.Node) {})
		must(t, err)
		return nodes[0].Sick != nil
	}
	prove(ahead)
	must(t, d.Results().StoreSickness(&observe.HealthFailure{At: now, Found: "tcp 80", Proven: ahead}))
	if !sick() {
		t.Error("what was found is not seen, because the clock was ahead when the health was proven")
	}
	must(t, d.Results().StoreSickness(&observe.HealthFailure{At: ahead, Found: "tcp 80", Proven: ahead}))
	prove(now)
	if sick() {
		t.Error("what was found while the clock was ahead is seen although the node was healthy since")
	}
}

// TestResults: the last probe counts, until the node is proven or configured again. Why a step
// failed is seen while the node is not configured or not proven.
func TestResults(t *testing.T) {
	mayChown(t)
	n := nodesIn(t.TempDir())
	must(t, n.Create(t.Context(), privileged(1, "one")))
	ref, at := engine.Ref{Site: "s", ID: 1}, time.Now().UTC()
	r := n.Dir(ref).Results()
	see := func() observe.Node {
		nodes, err := n.Observe("s", func(*observe.Node) {})
		must(t, err)
		return nodes[0]
	}
	must(t, r.StoreHealth(at, time.Time{}))
	must(t, r.StoreFailure(&observe.StepFailure{Step: "check", At: at, Found: "tcp 80"}))
	if o := see(); !o.ProbedAt.Equal(at) || o.Sick != nil || o.Failed == nil || o.Failed.Found != "tcp 80" {
		t.Errorf("%+v", o)
	}
	later := at.Add(time.Minute)
	must(t, r.StoreSickness(&observe.HealthFailure{At: later, Found: "tcp 80"}))
	if o := see(); !o.ProbedAt.Equal(later) || o.Sick == nil {
		t.Errorf("the later probe does not count: %+v", o)
	}
	must(t, n.SetProgress(t.Context(), ref, engine.Progress{Configured: true, Proven: "p", ProvenAt: later}))
	if o := see(); !o.ProbedAt.IsZero() || o.Sick != nil || o.Failed != nil {
		t.Errorf("what was found before the proof is seen: %+v", o)
	}
	must(t, r.StoreHealth(later, later))
	must(t, r.ForgetProbe())
	must(t, r.StoreFailure(nil))
	must(t, n.SetProgress(t.Context(), ref, engine.Progress{}))
	if o := see(); !o.ProbedAt.IsZero() || o.Failed != nil {
		t.Errorf("what was forgotten is seen: %+v", o)
	}
}
