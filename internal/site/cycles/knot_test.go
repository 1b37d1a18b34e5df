package cycles

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestEach: every reachable vertex is in exactly one component. It contains the vertices that it
// reaches and that reach it, and comes after those that it leads to.
func TestEach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "vertices")
		vertex := rapid.IntRange(0, n-1)
		edges := make([][]int, n)
		for v := range edges {
			edges[v] = rapid.SliceOfN(vertex, 0, 3).Draw(t, "edges")
		}
		reaches := make([][]bool, n) // Warshall
		for v := range reaches {
			reaches[v] = make([]bool, n)
			reaches[v][v] = true
			for _, w := range edges[v] {
				reaches[v][w] = true
			}
		}
		for via := range n {
			for v := range n {
				for w := range n {
					reaches[v][w] = reaches[v][w] || reaches[v][via] && reaches[via][w]
				}
			}
		}
		from := rapid.SliceOfN(vertex, 1, 3).Draw(t, "from")
		place := map[int]int{}
		count := 0
		StronglyConnected(n, from, func(v int) []int { return edges[v] }, func(component []int) {
			for _, v := range component {
				if _, again := place[v]; again {
					t.Fatalf("%d is in two components", v)
				}
				place[v] = count
			}
			count++
		})
		for v := range n {
			reached := slices.ContainsFunc(from, func(f int) bool { return reaches[f][v] })
			if _, found := place[v]; found != reached {
				t.Fatalf("%d: found %t, reached %t", v, found, reached)
			}
			for w := range n {
				switch {
				case !reached || !reaches[v][w]:
				case reaches[w][v] != (place[v] == place[w]):
					t.Fatalf("%d and %d", v, w)
				case place[w] > place[v]:
					t.Fatalf("%d comes before %d, to which it leads", v, w)
				}
			}
		}
	})
}

// TestDeep: a long path does not exhaust the stack.
func TestDeep(t *testing.T) {
	const n = 300_000
	count := 0
	StronglyConnected(n, []int{0}, func(v int) []int { return []int{min(v+1, n-1)} }, func([]int) { count++ })
	if count != n {
		t.Error(count)
	}
}
