package draw

import (
	"math"
	"testing"
)

// TestAxis: the texts of an axis do not overlap in a plot as narrow as that of a comparison, which
// is 12 rem. A letter takes about half a rem.
func TestAxis(t *testing.T) {
	for _, reach := range [][2]float64{{0.7, 4}, {0.94, 1.05}, {0.99, 1.5}, {0.01, 1.02}, {0.5, 1.08}, {0.9, 30}} {
		r := NewRuler()
		r.Extend(reach[0], reach[1])
		major := r.major()
		if len(major) == 0 || major[0] != 1 {
			t.Errorf("%v: equal is not on the axis: %v", reach, major)
		}
		for i, a := range major {
			for _, b := range major[:i] {
				const plot, letter = 192, 6.3 // pixels
				apart := math.Abs(r.At(a)-r.At(b)) / 100 * plot
				if needed := letter * float64(len([]rune(tick(a)))+len([]rune(tick(b)))) / 2; apart < needed {
					t.Errorf("%v: %s and %s are %.0f px apart and need %.0f", reach, tick(a), tick(b), apart, needed)
				}
			}
		}
	}
}
