// Package selector is the language that selects nodes: by name and by property, combined with not,
// and, or.
//
// It is described in docs/site-file.md. It does no I/O.
package selector

import "orrery/internal/site"

// A Selector chooses nodes of a site. The zero Selector chooses all.
type Selector struct {
	text string
	expr expr // nil: all
}

// String returns the text that the selector was made from.
func (q Selector) String() string { return q.text }

// Match reports whether the selector chooses a node. To choose among many, Select is faster.
func (q Selector) Match(s *site.Site, n *site.Node) bool {
	return q.expr == nil || q.expr.bind(NewView(s))(n)
}

// Select returns the nodes that the selector chooses, in order of id.
func (q Selector) Select(s *site.Site) []*site.Node { return NewView(s).Select(q) }

// Check tells what in the selector matches no node of the site at all: a misspelt name, most likely.
func (q Selector) Check(s *site.Site) error { return NewView(s).Check(q) }

// Select returns the nodes that any of several selectors chooses, in order of id: all nodes if
// there is no selector. A name or property that matches no node at all is an error.
func Select(s *site.Site, texts ...string) ([]*site.Node, error) {
	v := NewView(s)
	queries := make([]Selector, 0, max(len(texts), 1))
	for _, text := range texts {
		q, err := Parse(text)
		if err != nil {
			return nil, err
		}
		if err := v.Check(q); err != nil {
			return nil, err
		}
		queries = append(queries, q)
	}
	if len(texts) == 0 {
		queries = append(queries, Selector{})
	}
	return v.selectAny(queries), nil
}
