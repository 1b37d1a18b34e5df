package stats

import "testing"

// TestHeapsDecideNothing: a median that jumps between two heaps is no difference, in a table of one run and of two. Each
// side is in the fast heap in about half of its rounds, and the medians happen to lie in different ones.
func TestHeapsDecideNothing(t *testing.T) {
	const fast, slow = 1.0, 1.3
	side := func(ofFast int) (x []float64) {
		for i := range 20 {
			noise := 1 + 0.001*float64(i%5)
			if i < ofFast {
				x = append(x, fast*noise)
			} else {
				x = append(x, slow*noise)
			}
		}
		return x
	}
	bare := make([]float64, 20)
	for i := range bare {
		bare[i] = 1.14 + 0.0001*float64(i%3)
	}
	rows := []Row{{Setting: side(5), Base: bare}, {Setting: side(15), Base: bare}, {Setting: bare, Base: side(15)}}
	for i, row := range rows {
		alone := resample(gather(logRatios(row.Setting, row.Base), nil).units()).p()
		j := Judge([]Row{row})[0]
		if !j.Modes {
			t.Errorf("row %d: the two heaps are not noticed", i)
		}
		if j.P <= alone {
			t.Errorf("row %d: P is %g, and that of the median alone is %g", i, j.P, alone)
		}
	}
	pair := Pair{Before: side(13), After: side(7)}
	if j := JudgePairs([]Pair{pair})[0]; !j.Modes || j.P < 0.05 || j.Verdict == Differs {
		t.Errorf("two runs: %+v", j)
	}
	for what, p := range map[string]Pair{"before": {Before: side(13), After: bare}, "after": {Before: bare, After: side(13)}} {
		if !JudgePairs([]Pair{p})[0].Modes {
			t.Errorf("two runs, heaps only %s: they are not noticed", what)
		}
	}
	// What does not jump is decided as ever: a guard that refuses all decides nothing either.
	clear := make([]float64, 20)
	for i := range clear {
		clear[i] = 1.3 * bare[19-i]
	}
	if j := Judge([]Row{{Setting: clear, Base: bare}})[0]; j.Modes || j.Verdict != Differs {
		t.Errorf("a clear difference: %+v", j)
	}
}

// TestHeapsNeedValues: seven values are too few to speak of heaps, eight are enough; one far value is an outlier and
// equal values have no heaps.
func TestHeapsNeedValues(t *testing.T) {
	heaps := []float64{0, 0.01, 0.02, 0.03, 1, 1.01, 1.02, 1.03}
	for what, c := range map[string]struct {
		x    []float64
		want bool
	}{
		"eight": {heaps, true}, "seven": {heaps[:7], false},
		"an outlier": {[]float64{0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 5}, false},
		"equal":      {make([]float64, 12), false},
		"two of ten": {[]float64{0, 0.01, 0.02, 0.03, 0, 0.01, 0.02, 0.03, 1, 1.01}, true},
	} {
		if got := modes(c.x); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}
