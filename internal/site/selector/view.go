package selector

import (
	"slices"

	"orrery/internal/site"
)

// A View is a site as selectors see it, with what is worth computing once for all nodes.
type View struct {
	site *site.Site
	// role as declared by nodes → itself and all roles that it needs; made when first asked for
	closure map[string][]string
	twinned *View // of the site of which this one is a twin; nil: it is none
}

// NewView makes a view of a site, for whoever has many selectors to try on it.
func NewView(s *site.Site) *View {
	v := &View{site: s}
	if s.Original != nil {
		v.twinned = NewView(s.Original)
	}
	return v
}

// Select returns the nodes that a selector chooses, in order of id.
func (v *View) Select(q Selector) []*site.Node { return v.selectAny([]Selector{q}) }

// Check tells what in a selector matches no node of the site at all: a misspelt name, most likely.
func (v *View) Check(q Selector) error {
	if q.expr == nil {
		return nil
	}
	if v.twinned != nil && v.twinned.Check(q) == nil {
		return nil // a twin need not have all nodes
	}
	for _, t := range q.expr.terms(nil) {
		if p := t.miss(v, q.text); p != nil {
			return p
		}
	}
	return nil
}

func (v *View) selectAny(queries []Selector) []*site.Node {
	tests := make([]test, len(queries))
	for i, q := range queries {
		tests[i] = func(*site.Node) bool { return true }
		if q.expr != nil {
			tests[i] = q.expr.bind(v)
		}
	}
	var chosen []*site.Node
	for i := range v.site.Nodes { // they are in order of id
		n := &v.site.Nodes[i]
		for _, t := range tests {
			if t(n) {
				chosen = append(chosen, n)
				break
			}
		}
	}
	return chosen
}

// called returns the test for nodes of a name; where none has it, for those of a group of that name.
func (v *View) called(matches func(string) bool) test {
	named := func(n *site.Node) bool { return matches(n.Name) || slices.ContainsFunc(n.Aliases, matches) }
	all := v
	if v.twinned != nil { // what a twin leaves out has its name nevertheless
		all = v.twinned
	}
	if !all.any(named) && all.any(grouped(matches)) {
		return grouped(matches)
	}
	return named
}

func grouped(matches func(string) bool) test {
	return func(n *site.Node) bool { return slices.ContainsFunc(n.Groups, matches) }
}

func (v *View) any(t test) bool {
	for i := range v.site.Nodes {
		if t(&v.site.Nodes[i]) {
			return true
		}
	}
	return false
}

// bearers returns the declared roles with which a node has, directly or by need, a role that matches.
func (v *View) bearers(matches func(string) bool) map[string]bool {
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
	lookUp := func(name string) (*site.Role, bool) {
		if byName[name] == nil {
			byName[name] = &site.Role{Name: name}
		}
		return byName[name], true
	}
	closures := map[string][]string{}
	for i := range s.Nodes {
		for _, name := range slices.Concat(s.Nodes[i].Roles, s.Nodes[i].StandsFor) {
			if closures[name] != nil {
				continue
			}
			for _, needed := range site.Closure([]string{name}, lookUp) {
				closures[name] = append(closures[name], needed.Name)
			}
		}
	}
	return closures
}
