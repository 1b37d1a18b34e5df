package selector

import (
	"slices"

	"orrery/internal/site"
)

// A view is a site as selectors see it, with what is worth computing once for all nodes.
type view struct {
	site    *site.Site
	closure map[string][]string // role as declared by nodes → itself and all roles that it needs; made when first asked for
}

func newView(s *site.Site) *view { return &view{site: s} }

// bearers gives the declared roles with which a node has, directly or by need, a role that matches.
func (v *view) bearers(matches func(string) bool) map[string]bool {
	if v.closure == nil {
		v.closure = closures(v.site)
	}
	bearers := map[string]bool{}
	for role, closure := range v.closure {
		if slices.ContainsFunc(closure, matches) {
			bearers[role] = true
		}
	}
	return bearers
}

// closures also covers roles that nodes name but nobody has written: a mistake, but not of the selector.
func closures(s *site.Site) map[string][]string {
	byName := make(map[string]*site.Role, len(s.Roles))
	for i := range s.Roles {
		byName[s.Roles[i].Name] = &s.Roles[i]
	}
	closures := map[string][]string{}
	add := func(name string) {
		if _, done := closures[name]; done {
			return
		}
		seen, todo := map[string]bool{}, []string{name}
		var closure []string
		for len(todo) > 0 {
			last := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if seen[last] {
				continue
			}
			seen[last] = true
			closure = append(closure, last)
			if role, ok := byName[last]; ok {
				todo = append(todo, role.NeedsRoles...)
			}
		}
		closures[name] = closure
	}
	for i := range s.Nodes {
		for _, name := range s.Nodes[i].Roles {
			add(name)
		}
	}
	return closures
}
