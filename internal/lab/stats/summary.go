package stats

import (
	"math"
	"slices"
)

// A Summary is what is told of the values of one setting. Values that are no finite numbers are left out; without any, all is zero.
type Summary struct {
	N         int // finite values
	Median    float64
	Low, High float64 // 95 % interval of the median
	Least     float64
	Most      float64
	Spread    float64 // median absolute deviation over the median: robust against outliers, which Least and Most show; 0 if the median is
}

// Summarize sums up values in any unit. The seed is not needed, since the bootstrap is computed whole (see resampled), and stays for
// those who would rather draw.
func Summarize(x []float64, _ uint64) Summary {
	x = slices.DeleteFunc(slices.Clone(x), func(v float64) bool { return !finite(v) })
	if len(x) == 0 {
		return Summary{}
	}
	slices.Sort(x)
	r := resample(x)
	s := Summary{N: len(x), Median: r.median, Least: x[0], Most: x[len(x)-1]}
	s.Low, s.High = r.interval()
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

// bounded keeps what is too large, or too small, for a number a number: JSON has no infinity, and a ratio is never zero.
func bounded(v float64) float64 {
	return min(max(v, math.SmallestNonzeroFloat64), math.MaxFloat64)
}
