package site

import (
	"maps"
	"slices"
)

// VarsOf returns the variables of a node: those of its groups, in the order in which the site
// declares them, and its own. Of variables with the same name, the last one counts. The caller must
// not change the result.
func (s *Site) VarsOf(n *Node) map[string]any {
	var vars map[string]any
	for _, g := range s.varGroups(n) {
		if vars == nil {
			vars = make(map[string]any, len(g.Vars)+len(n.Vars))
		}
		maps.Copy(vars, g.Vars)
	}
	if vars == nil {
		return n.Vars
	}
	maps.Copy(vars, n.Vars)
	return vars
}

// varGroups returns the groups of a node that have variables.
func (s *Site) varGroups(n *Node) (all []*Group) {
	for i := range s.Groups {
		if g := &s.Groups[i]; len(g.Vars) > 0 && slices.Contains(n.Groups, g.Name) {
			all = append(all, g)
		}
	}
	return all
}

// TemplateVars returns what templates see as the variables of a node: those of the site and VarsOf,
// which counts if both have a name. The caller must not change the result.
func (s *Site) TemplateVars(n *Node) map[string]any {
	vars := s.VarsOf(n)
	switch {
	case len(s.Vars) == 0:
		return vars
	case len(vars) == 0:
		return s.Vars
	}
	all := maps.Clone(s.Vars)
	maps.Copy(all, vars)
	return all
}

// A DeclaredVar is a variable of a node, and the table that declares it.
type DeclaredVar struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
	From  string `json:"from"` // "site", "group NAME" or "node NAME"
	// Hides lists the tables whose values From replaces, the last first.
	Hides []string `json:"hides"`
}

// DeclaredVars returns TemplateVars with their origins, sorted by name.
func (s *Site) DeclaredVars(n *Node) []DeclaredVar {
	found := map[string]*DeclaredVar{}
	add := func(vars map[string]any, from string) {
		for name, value := range vars {
			v := &DeclaredVar{Name: name, Value: value, From: from, Hides: []string{}}
			if hidden := found[name]; hidden != nil {
				v.Hides = append([]string{hidden.From}, hidden.Hides...)
			}
			found[name] = v
		}
	}
	add(s.Vars, "site")
	for _, g := range s.varGroups(n) {
		add(g.Vars, "group "+g.Name)
	}
	add(n.Vars, "node "+n.Name)
	all := []DeclaredVar{}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		all = append(all, *found[name])
	}
	return all
}
