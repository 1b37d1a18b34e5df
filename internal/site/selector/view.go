package selector

import (
	"slices"

	"orrery/internal/site"
)

// A View is a site with the data that selectors need to compute only once.
type View struct {
	site *site.Site
	// closure maps each role that nodes declare to itself and all roles that it needs. It is
	// computed when first used.
	closure map[string][]string
	twinned *View // view of the original if the site is a twin, or nil
}

// NewView returns a view of a site, for callers that evaluate many selectors.
func NewView(s *site.Site) *View {
	v := &View{site: s}
	if s.Original != nil {
		v.twinned = NewView(s.Original)
	}
	return v
}

// Select returns the nodes that a selector selects, in order of id.
func (v *View) Select(q Selector) []*site.Node { return v.selectAny([]Selector{q}) }

// Check returns an error for the first term that matches no node of the site, probably because of a
// misspelt name.
func (v *View) Check(q Selector) error {
	if q.expr == nil {
		return nil
	}
	if v.twinned != nil && v.twinned.Check(q) == nil {
		return nil // a twin may leave out nodes
	}
	for _, t := range q.expr.terms(nil) {
		if p := t.noMatch(v, q.text); p != nil {
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
	for i := range v.site.Nodes { // in order of id
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

// byName returns the test for nodes with a matching name. If no node has one, it returns the test
// for nodes in a group with a matching name.
func (v *View) byName(matches func(string) bool) test {
	named := func(n *site.Node) bool { return matches(n.Name) || slices.ContainsFunc(n.Aliases, matches) }
	all := v
	if v.twinned != nil { // a node that the twin leaves out still has its name
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

// rolesMatching returns the declared roles that match, or that need a role that matches.
func (v *View) rolesMatching(matches func(string) bool) map[string]bool {
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

// closures also covers roles that do not exist. They are a mistake of the site, not of the
// selector.
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
			for _, needed := range site.TransitiveRoles([]string{name}, lookUp) {
				closures[name] = append(closures[name], needed.Name)
			}
		}
	}
	return closures
}
