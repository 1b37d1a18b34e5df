// Package cycles finds cycles in a graph.
package cycles

import "slices"

// StronglyConnected calls each for every strongly connected component that is reachable from some
// vertices of a graph. Vertices have the numbers from 0 to vertices-1, and leads returns the
// successors of one. Most components are a single vertex. A component comes after all those that it
// leads to. Its first vertex is the one that was reached first (Tarjan's algorithm).
func StronglyConnected(vertices int, from []int, leads func(vertex int) []int, each func(component []int)) {
	number, lowest := make([]int, vertices), make([]int, vertices) // 0 means not yet reached
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
		component := slices.Clone(open[first:])
		open = open[:first]
		for _, within := range component {
			closed[within] = true
		}
		each(component)
	}
	for _, v := range from {
		if number[v] == 0 {
			visit(v)
		}
	}
}
