package check

import (
	"fmt"
	"testing"

	"orrery/internal/site"

	"pgregory.net/rapid"
)

// TestNumbers compares the search for equal numbers with a search over all pairs.
func TestNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &site.Site{}
		number := rapid.OneOf(rapid.IntRange(1, 12), rapid.SampledFrom([]int{70, 71, 700, 701, 7001, 9999}))
		id := rapid.OneOf(rapid.IntRange(1, 12),
			rapid.SampledFrom([]int{101, 1001, 1101, 7001, 10001, 11001, 70101, 71001, 100101, 700101, 701001, 701101}))
		for _, n := range rapid.SliceOfNDistinct(number, 1, 6, rapid.ID).Draw(t, "releases") {
			s.Releases = append(s.Releases, site.Release{Number: n})
		}
		for i, id := range rapid.SliceOfNDistinct(id, 1, 8, rapid.ID).Draw(t, "ids") {
			s.Nodes = append(s.Nodes, site.Node{Name: fmt.Sprint("n", i), ID: id})
		}
		all := map[int]int{}
		for _, n := range s.Nodes {
			all[n.ID]++
			for _, r := range s.Releases {
				all[site.FullID(r.Number, n.ID)]++
			}
		}
		same := 0
		for _, times := range all {
			same += times * (times - 1) / 2
		}
		found := newFindings()
		checkNumbers(newIndex(s), found)
		if len(found.mistakes) != same {
			t.Fatalf("%d, not %d, of %v %v: %+v", len(found.mistakes), same, s.Releases, s.Nodes, found.mistakes)
		}
	})
}
