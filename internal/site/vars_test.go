package site

import (
	"maps"
	"reflect"
	"testing"
)

// TestVars: variables of the site, of groups in their order, and of the node replace one another.
func TestVars(t *testing.T) {
	s := &Site{
		Vars: map[string]any{"a": "site", "s": "site"},
		Groups: []Group{
			{Name: "z", Vars: map[string]any{"a": "z", "b": "z", "c": "z"}},
			{Name: "other", Vars: map[string]any{"a": "other", "o": "other"}},
			{Name: "b", Vars: map[string]any{"b": "b", "c": "b"}},
		},
		Nodes: []Node{
			{Name: "one", Groups: []string{"b", "plain", "z"}, Vars: map[string]any{"c": "node"}},
			{Name: "two", Groups: []string{"plain"}, Vars: map[string]any{"c": "node"}},
			{Name: "three"},
		},
	}
	before := maps.Clone(s.Groups[0].Vars)
	for _, c := range []struct {
		vars, want map[string]any
	}{
		{s.VarsOf(&s.Nodes[0]), map[string]any{"a": "z", "b": "b", "c": "node"}},
		{s.TemplateVars(&s.Nodes[0]), map[string]any{"a": "z", "b": "b", "c": "node", "s": "site"}},
		{s.VarsOf(&s.Nodes[1]), map[string]any{"c": "node"}},
		{s.TemplateVars(&s.Nodes[1]), map[string]any{"a": "site", "c": "node", "s": "site"}},
		{s.VarsOf(&s.Nodes[2]), nil},
		{s.TemplateVars(&s.Nodes[2]), map[string]any{"a": "site", "s": "site"}},
	} {
		if len(c.vars) != len(c.want) || len(c.want) > 0 && !reflect.DeepEqual(c.vars, c.want) {
			t.Errorf("%v, not %v", c.vars, c.want)
		}
	}
	if !reflect.DeepEqual(s.Groups[0].Vars, before) {
		t.Errorf("the group's own variables became %v", s.Groups[0].Vars)
	}
}
