// Package cycles finds cycles in a graph.
package cycles

import "slices"

// Each passes to each the knots of a graph that are reached from some of its vertices, which are numbered
// from 0: vertices that lead to one another, mostly a single one that does not. Each knot comes after all
// those that it leads to, and has the vertex first by which it was reached (Tarjan's algorithm).
func Each(vertices int, from []int, leads func(vertex int) []int, each func(knot []int)) {
	number, lowest := make([]int, vertices), make([]int, vertices) // 0: not yet reached
	closed := make([]bool, vertices)
	var open []int
	reached := 0
	var visit func(v int)
	visit = func(v int) {
		reached++
		number[v], lowest[v] = reached, reached
		open = append(open, v)
		for _, next := range leads(v) {
			switch {
			case number[next] == 0:
				visit(next)
				lowest[v] = min(lowest[v], lowest[next])
			case !closed[next]:
				lowest[v] = min(lowest[v], number[next])
			}
		}
		if lowest[v] < number[v] {
			return
		}
		first := len(open) - 1
		for open[first] != v {
			first--
		}
		knot := slices.Clone(open[first:])
		open = open[:first]
		for _, within := range knot {
			closed[within] = true
		}
		each(knot)
	}
	for _, v := range from {
		if number[v] == 0 {
			visit(v)
		}
	}
}
