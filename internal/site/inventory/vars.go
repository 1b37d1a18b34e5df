package inventory

import (
	"maps"
	"slices"

	"orrery/internal/site"
)

// A DeclaredVar is a variable of a node, and the table that declares it.
type DeclaredVar struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
	From  string `json:"from"` // "site", "group NAME" or "node NAME"
	// Hides lists the tables whose values From replaces, the last first.
	Hides []string `json:"hides"`
}

// DeclaredVars returns Site.TemplateVars with their origins, sorted by name.
func DeclaredVars(s *site.Site, n *site.Node) []DeclaredVar {
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
	for _, g := range s.Groups {
		if slices.Contains(n.Groups, g.Name) {
			add(g.Vars, "group "+g.Name)
		}
	}
	add(n.Vars, "node "+n.Name)
	all := []DeclaredVar{}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		all = append(all, *found[name])
	}
	return all
}
