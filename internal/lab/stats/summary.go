package stats

import (
	"math"
	"slices"
)

// A Summary summarizes the values of one setting. Values that are not finite are omitted. Without
// finite values, all fields are zero.
type Summary struct {
	N      int     `json:"n"`      // number of finite values
	Median float64 `json:"median"` // over instances, of the medians of their rounds
	Low    float64 `json:"low"`    // of the 95 % interval of the median
	High   float64 `json:"high"`
	// too few instances for an interval: Low and High are the lowest and the highest
	Range bool    `json:"range,omitempty"`
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
	// Median absolute deviation divided by the median, or 0 if the median is 0. It is robust
	// against outliers, which Least and Most show.
	Spread float64 `json:"spread"`
}

// Summarize summarizes values in any unit, by round. instances are those of the rounds, as in a
// Comparison. block is the number of consecutive instances that count as one.
func Summarize(x []float64, instances []int, block int) Summary {
	by := groupByInstance(x, instances).finite()
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

// deviation returns the median absolute deviation from a value.
func deviation(x []float64, from float64) float64 {
	away := make([]float64, len(x))
	for i, v := range x {
		away[i] = math.Abs(v - from)
	}
	slices.Sort(away)
	return median(away)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// bounded limits a number to the range of positive finite numbers: JSON has no infinity, and a
// ratio is never zero.
func bounded(v float64) float64 {
	return min(max(v, math.SmallestNonzeroFloat64), math.MaxFloat64)
}
