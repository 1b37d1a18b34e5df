package check

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/cycles"
	"orrery/internal/site/selector"
)

// checkWaits checks the selectors of needs.healthy, and that no nodes wait for each other. A node
// does not wait for itself.
func checkWaits(ix *index, found *findings) {
	g := &waitGraph{nodes: len(ix.Nodes)}
	index := make(map[*site.Node]int, len(ix.Nodes))
	for i := range ix.Nodes {
		index[&ix.Nodes[i]] = i
	}
	// Every role that waits is a vertex between the nodes that have it and the nodes that it waits
	// for. One edge for every pair of nodes would be far too many.
	g.edges = make([][]int, len(ix.Nodes))
	vertex := map[string]int{}
	view := selector.NewView(ix.Site)
	for r := range each(ix.Roles) {
		if len(r.NeedsHealthy) == 0 {
			continue
		}
		var targets []int
		for k, text := range r.NeedsHealthy {
			for _, n := range awaited(ix, found, view, at("role", r.Name, "needs", "healthy", k), r.Name, text) {
				targets = append(targets, index[n])
			}
		}
		vertex[r.Name] = len(g.edges)
		g.edges = append(g.edges, targets)
		g.roles = append(g.roles, r)
	}
	if len(vertex) == 0 {
		return
	}
	for i := range ix.Nodes {
		for _, r := range ix.rolesOf(ix.Nodes[i].Roles) {
			if v, waits := vertex[r.Name]; waits {
				g.edges[i] = append(g.edges[i], v)
			}
		}
	}
	all := make([]int, len(g.edges))
	for v := range all {
		all[v] = v
	}
	cycles.StronglyConnected(len(all), all, func(v int) []int { return g.edges[v] }, func(vertices []int) {
		if len(vertices) > 1 {
			slices.Reverse(vertices)
			addCycle(ix, found, g, vertices)
		}
	})
}

func awaited(ix *index, found *findings, view *selector.View, key []string, role, text string) []*site.Node {
	q, err := selector.Parse(text)
	if err == nil && ix.used[role] {
		err = view.Check(q)
	}
	if err != nil {
		m := Issue{Key: key, What: err.Error()}
		if p, ok := err.(*problem.Problem); ok {
			m.What, m.Cure = p.What, p.Cure
		}
		found.add(m)
		return nil
	}
	return view.Select(q)
}

func addCycle(ix *index, found *findings, g *waitGraph, knot []int) {
	var nodes []int
	within := map[int]bool{}
	for _, v := range knot {
		within[v] = true
		if v < g.nodes {
			nodes = append(nodes, v)
		}
	}
	if len(nodes) < 2 {
		return
	}
	forward := g.path(nodes[0], nodes[1], within)
	path := append(forward, g.path(nodes[1], nodes[0], within)[1:]...)
	var words []string
	var first *site.Role
	for _, v := range path {
		if v < g.nodes {
			words = append(words, ix.Nodes[v].Name)
		} else if first == nil {
			first = g.roles[v-g.nodes]
		}
	}
	found.report(at("role", first.Name, "needs", "healthy"),
		`remove one of the selectors or narrow it with "and not …"`,
		"nodes wait for one another to be healthy: %s", fmt.Sprint(strings.Join(words, " → ")))
}

// A waitGraph has a vertex for each node, followed by one for each role that waits.
type waitGraph struct {
	nodes int
	edges [][]int
	roles []*site.Role
}

// path returns a shortest path between two vertices that uses only the vertices of within.
func (g *waitGraph) path(from, to int, within map[int]bool) []int {
	before := map[int]int{from: -1}
	for todo := []int{from}; len(todo) > 0; todo = todo[1:] {
		v := todo[0]
		if v == to {
			var path []int
			for ; v >= 0; v = before[v] {
				path = append([]int{v}, path...)
			}
			return path
		}
		for _, w := range g.edges[v] {
			if _, seen := before[w]; !seen && within[w] {
				before[w] = v
				todo = append(todo, w)
			}
		}
	}
	return []int{from}
}
