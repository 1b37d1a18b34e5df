// Package selector is the language in which nodes are chosen: by name, by property, combined with not, and, or.
//
// It is described in docs/site-file.md. It does no I/O.
package selector

import "orrery/internal/site"

// A Selector chooses nodes of a site. The zero Selector chooses all.
type Selector struct {
	text string
	expr expr // nil: all
}

// String gives the text that the selector was made from.
func (q Selector) String() string { return q.text }

// Match reports whether the selector chooses a node. To choose among many, Select is faster.
func (q Selector) Match(s *site.Site, n *site.Node) bool {
	return q.expr == nil || q.expr.bind(newView(s))(n)
}

// Select gives the nodes that the selector chooses, in order of id.
func (q Selector) Select(s *site.Site) []*site.Node { return selectWith(newView(s), []Selector{q}) }

// Check tells what in the selector matches no node of the site at all: a misspelt name, most likely.
func (q Selector) Check(s *site.Site) error { return check(newView(s), q) }

// Select gives the nodes that any of several selectors chooses, in order of id: all nodes if there is no selector.
// A name or property that matches no node at all is an error.
func Select(s *site.Site, texts ...string) ([]*site.Node, error) {
	v := newView(s)
	queries := make([]Selector, 0, max(len(texts), 1))
	for _, text := range texts {
		q, err := Parse(text)
		if err != nil {
			return nil, err
		}
		if err := check(v, q); err != nil {
			return nil, err
		}
		queries = append(queries, q)
	}
	if len(texts) == 0 {
		queries = append(queries, Selector{})
	}
	return selectWith(v, queries), nil
}

func selectWith(v *view, queries []Selector) []*site.Node {
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

func check(v *view, q Selector) error {
	if q.expr == nil {
		return nil
	}
	for _, t := range q.expr.terms(nil) {
		if p := t.miss(v, q.text); p != nil {
			return p
		}
	}
	return nil
}
