package selector

import "orrery/internal/site"

// A test reports whether a node is selected.
type test func(*site.Node) bool

// An expr is a node of a selector's syntax tree.
type expr interface {
	bind(*View) test     // returns the test for the view's site, with everything precomputed that is possible
	terms([]term) []term // adds the terms that the expression consists of
}

type (
	not struct{ x expr }
	and struct{ x, y expr }
	or  struct{ x, y expr }
	all struct{}
)

func (e not) bind(v *View) test {
	x := e.x.bind(v)
	return func(n *site.Node) bool { return !x(n) }
}

func (e and) bind(v *View) test {
	x, y := e.x.bind(v), e.y.bind(v)
	return func(n *site.Node) bool { return x(n) && y(n) }
}

func (e or) bind(v *View) test {
	x, y := e.x.bind(v), e.y.bind(v)
	return func(n *site.Node) bool { return x(n) || y(n) }
}

func (all) bind(*View) test { return func(*site.Node) bool { return true } }

func (e not) terms(to []term) []term { return e.x.terms(to) }
func (e and) terms(to []term) []term { return e.y.terms(e.x.terms(to)) }
func (e or) terms(to []term) []term  { return e.y.terms(e.x.terms(to)) }
func (all) terms(to []term) []term   { return to }
