// Package selector implements the language that selects nodes. It selects them by name and by
// property, and combines selections with not, and, or.
//
// The language is described in docs/site-file.md. The package does no I/O.
package selector

import "orrery/internal/site"

// A Selector selects nodes of a site. The zero Selector selects all.
type Selector struct {
	text string
	expr expr // nil selects all
}

// String returns the text that was parsed.
func (q Selector) String() string { return q.text }

// Match reports whether the selector selects a node. To test many nodes, Select is faster.
func (q Selector) Match(s *site.Site, n *site.Node) bool {
	return q.expr == nil || q.expr.bind(NewView(s))(n)
}

// Select returns the nodes that the selector selects, in order of id.
func (q Selector) Select(s *site.Site) []*site.Node { return NewView(s).Select(q) }

// Check returns an error for the first term that matches no node of the site, probably because of a
// misspelt name.
func (q Selector) Check(s *site.Site) error { return NewView(s).Check(q) }

// Select returns the nodes that at least one of the selectors selects, in order of id. It returns
// all nodes if there is no selector. A name or property that matches no node is an error.
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
