package pack_test

import (
	"testing"

	"orrery/internal/plan"
	"orrery/internal/plan/pack"
	"orrery/internal/plan/wayback"
	"orrery/internal/site/spec"
)

// TestNoteRestarts: a stop is marked if the same host starts the node again. A stop that undoes a
// start never is.
func TestNoteRestarts(t *testing.T) {
	db, web := &spec.Node{Name: "db", ID: 1}, &spec.Node{Name: "web", ID: 2}
	p := &plan.Plan{Steps: []*plan.Step{
		{Kind: plan.StopNode, Host: "sv1", Old: db}, {Kind: plan.KillNode, Host: "sv1", Old: web},
		{Kind: plan.StopNode, Host: "sv2", Old: db},
		{Kind: plan.StartNode, Host: "sv1", Node: db}, {Kind: plan.StartNode, Host: "sv1", Node: web},
		{Kind: plan.StartNode, Host: "sv3", Node: db},
	}}
	for n, s := range p.Steps {
		s.N = n
	}
	pack.MarkRestarts(p)
	for n, want := range []bool{true, true, false, false, false, false} {
		if p.Steps[n].Restarts != want {
			t.Errorf("step %d: %v", n, !want)
		}
	}
	for _, s := range wayback.Undo(p, p.Steps).Steps {
		if s.Restarts {
			t.Errorf("undoing waits for room: %v", s)
		}
	}
}
