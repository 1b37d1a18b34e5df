package draw

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/lab/report/quantity"
)

// TestSteps: an axis has a few steps, all of them between its ends, for any ends.
func TestSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, reach := rapid.Float64().Draw(t, "from"), rapid.Float64Min(0).Draw(t, "reach")
		to := from + reach
		for _, y := range Steps(from, to, RoundStep(to-from)) {
			if y > to {
				t.Fatalf("%g is beyond %g", y, to)
			}
		}
	})
	if got := Steps(0, 27, RoundStep(27)); len(got) != 3 || got[2] != 20 {
		t.Errorf("%v", got)
	}
}

// TestFlat: spots are within the plot even if there is only one value, or if all values are equal.
func TestFlat(t *testing.T) {
	for _, line := range [][]Point{{{3, 5, 5, 5}}, {{0, 1e18, 1e18, 1e18}, {1, 1e18, 1e18, 1e18 + 128}},
		{{0, 0, 0, 0}, {1, 0, 0, 0}}} {
		p := XY{Left: line[0].X, Right: line[0].X, Bottom: line[0].Low, Top: line[0].High, Scale: quantity.Scale{Factor: 1}}
		p.Extend(line)
		got := string(p.SVG("flat", line, nil))
		if strings.Count(got, "<circle") != len(line) || strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
			t.Errorf("%v: %s", line, got)
		}
	}
}

// TestThinned: an axis keeps the marks that have space, including the first.
func TestThinned(t *testing.T) {
	var all []Mark
	for i := range 27 {
		all = append(all, Mark{X: float64(i)})
	}
	if got := ThinMarks(all); len(got) > 7 || got[0].X != 0 {
		t.Errorf("%v", got)
	}
	if got := ThinMarks(all[:5]); len(got) != 5 {
		t.Errorf("%v", got)
	}
	if math.IsNaN(RoundStep(1)) {
		t.Error("no step")
	}
}
