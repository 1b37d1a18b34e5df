package stats

import (
	"math"
	"slices"
)

// A Summary is what is told of the values of one setting. Values that are no finite numbers are
// left out; without any, all is zero.
type Summary struct {
	N      int     `json:"n"`      // finite values
	Median float64 `json:"median"` // over instances, of the medians of their rounds
	Low    float64 `json:"low"`    // of the 95 % interval of the median
	High   float64 `json:"high"`
	// too few instances for an interval: Low and High are the least and the greatest of theirs
	Range bool    `json:"range,omitempty"`
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
	// median absolute deviation over the median: robust against outliers, which Least and Most show; 0
	// if the median is
	Spread float64 `json:"spread"`
}

// Summarize sums up values in any unit, by round; instances are those of the rounds, as in a Row,
// and so many of them in a row count for one.
func Summarize(x []float64, instances []int, block int) Summary {
	by := gather(x, instances).finite()
	if len(by) == 0 {
		return Summary{}
	}
	x = slices.Sorted(slices.Values(slices.Concat(by...)))
	s := Summary{N: len(x), Least: x[0], Most: x[len(x)-1]}
	s.Median, s.Low, s.High, s.Range = by.blocks(max(block, 1)).interval()
	if s.Median != 0 {
		s.Spread = min(deviation(x, s.Median)/math.Abs(s.Median), math.MaxFloat64)
	}
	return s
}

// deviation is the median absolute deviation.
func deviation(x []float64, from float64) float64 {
	away := make([]float64, len(x))
	for i, v := range x {
		away[i] = math.Abs(v - from)
	}
	slices.Sort(away)
	return median(away)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// bounded keeps what is too large, or too small, for a number a number: JSON has no infinity, and a
// ratio is never zero.
func bounded(v float64) float64 {
	return min(max(v, math.SmallestNonzeroFloat64), math.MaxFloat64)
}
