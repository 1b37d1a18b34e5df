package stats

import (
	"math"
	"testing"
)

// TestHeapsDecideNothing: a median that jumps between two modes is not a difference, within one run
// and between two runs. By the median alone, there would be a significant difference.
func TestHeapsDecideNothing(t *testing.T) {
	const fast, slow = 1.0, 1.3
	side := func(ofFast int) (x []float64) {
		for i := range 20 {
			noise := 1 + 0.001*float64(i%5)
			if i*7%20 < ofFast { // in an order without autocorrelation
				x = append(x, fast*noise)
			} else {
				x = append(x, slow*noise)
			}
		}
		return x
	}
	steady := func(at float64) []float64 {
		x := make([]float64, 20)
		for i := range x {
			x[i] = at + 0.0001*float64(i%3)
		}
		return x
	}
	// On average there is no difference, but three of four values are on one side.
	bare := steady(1.217)
	rows := []Comparison{{Setting: side(5), Baseline: bare}, {Setting: side(15), Baseline: steady(1.068)},
		{Setting: steady(1.068), Baseline: side(15)}}
	for i, row := range rows {
		alone := resample(groupByInstance(logRatios(row.Setting, row.Baseline), nil).resamplingUnits()).p()
		j := Judge([]Comparison{row})[0]
		if !j.Bimodal {
			t.Errorf("row %d: the two heaps are not noticed", i)
		}
		if j.BlockLength != 1 || alone >= 0.05 || j.P < 0.05 || j.Verdict == Differs {
			t.Errorf("row %d: P of the median alone is %g, and it comes to %+v", i, alone, j)
		}
	}
	pair := pairOf(side(13), side(7))
	if j := JudgePairs([]Pair{pair})[0]; !j.Bimodal || j.P < 0.05 || j.Verdict == RunsDiffer {
		t.Errorf("two runs: %+v", j)
	}
	for what, p := range map[string]Pair{"before": pairOf(side(13), bare), "after": pairOf(bare, side(13))} {
		if !JudgePairs([]Pair{p})[0].Bimodal {
			t.Errorf("two runs, heaps only %s: they are not noticed", what)
		}
	}
	// A difference without such jumps is still decided: a guard that rejects everything would be
	// useless.
	clear := make([]float64, 20)
	for i := range clear {
		clear[i] = 1.3 * bare[19-i]
	}
	if j := Judge([]Comparison{{Setting: clear, Baseline: bare}})[0]; j.Bimodal || j.Verdict != Differs {
		t.Errorf("a clear difference: %+v", j)
	}
}

// TestHeapsNeedValues: seven values are too few for modes, eight are enough. A single distant value
// is an outlier. Equal values have no modes.
func TestHeapsNeedValues(t *testing.T) {
	heaps := []float64{0, 0.01, 0.02, 0.03, 1, 1.01, 1.02, 1.03}
	for what, c := range map[string]struct {
		x    []float64
		want bool
	}{
		"eight": {heaps, true}, "seven": {heaps[:7], false},
		"an outlier":    {[]float64{0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 5}, false},
		"equal":         {make([]float64, 12), false},
		"far from zero": {[]float64{1000, 1000.01, 1000.02, 1000.03, 1001, 1001.01, 1001.02, 1001.03}, true},
		"one hill":      {[]float64{1000, 1000.1, 1000.2, 1000.3, 1000.4, 1000.5, 1000.6, 1000.7}, false},
		"two of eleven": {[]float64{0, 0.01, 0.02, 0.03, 0, 0.01, 0.02, 0.03, 0.02, 1, 1.01}, false},
		"two of ten":    {[]float64{0, 0.01, 0.02, 0.03, 0, 0.01, 0.02, 0.03, 1, 1.01}, true},
	} {
		if got := isBimodal(c.x); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}

// TestModePoints: the bound is interpolated between the simulated numbers of values. Below the
// first and above the last, it is constant.
func TestModePoints(t *testing.T) {
	for n, want := range map[int]float64{
		8: 0.0379, 9: (0.0379 + 0.0576) / 2, 10: 0.0576, 11: (0.0576 + 0.0712) / 2, 13: 0.0712 + (0.0889-0.0712)/3,
		20:  0.1102,
		200: (0.1848 + 0.2127) / 2, 300: 0.2127, 301: 0.2127, 10000: 0.2127,
	} {
		if got := maxWithin(n); math.Abs(got-want) > 1e-12 {
			t.Errorf("%d values: %g instead of %g", n, got, want)
		}
	}
}
