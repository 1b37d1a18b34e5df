package inventory

import (
	"reflect"
	"testing"

	"orrery/internal/site"
)

// TestDeclaredVars: each variable has the table that declares it, and those whose values it replaces.
func TestDeclaredVars(t *testing.T) {
	s := &site.Site{
		Vars: map[string]any{"a": "site", "s": "site"},
		Groups: []site.Group{
			{Name: "z", Vars: map[string]any{"a": "z", "b": "z", "c": "z"}},
			{Name: "other", Vars: map[string]any{"a": "other"}},
			{Name: "b", Vars: map[string]any{"b": "b", "c": "b"}},
		},
		Nodes: []site.Node{{Name: "one", Groups: []string{"b", "plain", "z"}, Vars: map[string]any{"c": "node"}}},
	}
	want := []DeclaredVar{
		{"a", "z", "group z", []string{"site"}},
		{"b", "b", "group b", []string{"group z"}},
		{"c", "node", "node one", []string{"group b", "group z"}},
		{"s", "site", "site", []string{}},
	}
	if got := DeclaredVars(s, &s.Nodes[0]); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}
