package plan_test

import (
	"slices"
	"testing"

	"orrery/internal/plan"
	"orrery/internal/site"
)

// TestAwaitThroughPeers: a node waits for the peers of a peer that the run does not configure,
// because no other step waits for them.
func TestAwaitThroughPeers(t *testing.T) {
	chain := func() *site.Site {
		s := observatory()
		s.Roles[1].NeedsHealthy, s.Roles[3].NeedsHealthy = []string{"role=db"}, []string{"role=receptor"}
		return s
	}
	index := func(p *plan.Plan, kind plan.Kind, node string) int {
		return slices.IndexFunc(p.Steps, func(s *plan.Step) bool { return s.Kind == kind && s.Subject == node })
	}
	f := newFleet("sv1")
	f.reach(t, chain())
	s := chain()
	s.Roles[2].Steps[0].Script = []byte("createdb y\n")
	s.Roles[3].Files[0].Content = []byte("new\n")
	p := f.up(t, s, plan.Goal{})
	check, configure := index(p, plan.CheckNode, "db"), index(p, plan.ConfigureNode, "portal")
	if index(p, plan.ConfigureNode, "receptor1") >= 0 || check < 0 || configure < 0 {
		t.Fatalf("the plan is %q", lines(p))
	}
	if !closure(p)[configure][check] {
		t.Error("the portal does not wait for the database behind the receptors")
	}
	f.reach(t, s)
	f.wantReached(t, s)
}
