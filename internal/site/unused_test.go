package site

import (
	"slices"
	"testing"
)

// TestUnusedRoles: a role is used if a node, a release, a simulator or a used role needs it.
func TestUnusedRoles(t *testing.T) {
	s := &Site{
		Nodes:    []Node{{Name: "a", Roles: []string{"web"}, SimulatedBy: "web-sim"}, {Name: "b", Roles: []string{"gone"}}},
		Releases: []Release{{Number: 1, Roles: map[string]string{"web": "web2"}}},
		Roles: []Role{
			{Name: "old", NeedsRoles: []string{"older"}}, {Name: "older"}, {Name: "loop", NeedsRoles: []string{"loop"}},
			{Name: "web", NeedsRoles: []string{"base"}}, {Name: "base", SimulatedBy: "base-sim"}, {Name: "base-sim"},
			{Name: "web-sim"}, {Name: "web2", NeedsRoles: []string{"web", "web2-base"}}, {Name: "web2-base"},
		},
	}
	if got := s.UnusedRoles(); !slices.Equal(got, []string{"old", "older", "loop"}) {
		t.Errorf("%v", got)
	}
	if got := new(Site).UnusedRoles(); got == nil || len(got) > 0 {
		t.Errorf("%v", got)
	}
}
