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
