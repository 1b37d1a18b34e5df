package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// A medianDistribution is the bootstrap distribution of the median: that of samples drawn from values with
// replacement.
//
// It is computed exactly and not drawn. The median of a resample of n values is one of the n values
// or, for an even n, the mean of two of them. The probability of each follows from counting (Efron,
// Annals of Statistics 7, 1979; Maritz and Jarrett, JASA 73, 1978). This is the limit for more and
// more drawn resamples, without the noise of drawing: everyone gets the same interval from the same
// values. The small tails that determine an interval of few rounds are exact.
type medianDistribution struct {
	n       int // number of values
	median  float64
	medians []float64 // of resamples, ascending
	weights []float64 // their probabilities, with a sum of 1
}

// negligible is a probability that has no effect on an interval.
const negligible = 1e-15

// resample returns the distribution for at least one value, in ascending order. The first and the
// last may be infinite.
func resample(x []float64) medianDistribution {
	r := medianDistribution{n: len(x), median: median(x)}
	if r.n%2 == 1 {
		r.addOddMedians(x)
	} else {
		r.addEvenMedians(x)
	}
	stat.SortWeighted(r.medians, r.weights)
	return r
}

// addOddMedians adds the medians for an odd n. The median is then the value in the middle of n sorted
// draws.
func (r *medianDistribution) addOddMedians(x []float64) {
	below := 0.0
	for i, v := range x {
		upto := r.atLeast((r.n+1)/2, i+1)
		r.add(v, upto-below)
		below = upto
	}
}

// addEvenMedians adds the medians for an even n. The mean of the i-th and the j-th value is the median if the
// sorted draws n/2 and n/2+1 are these values.
func (r *medianDistribution) addEvenMedians(x []float64) {
	half := r.n / 2
	// The logarithm of the probability that the highest of n/2 draws is the i-th value. The
	// probability that the lowest is the i-th from the end is the same.
	edge := make([]float64, r.n)
	for i := range edge {
		edge[i] = math.Log(math.Pow(r.share(i+1), float64(half)) - math.Pow(r.share(i), float64(half)))
	}
	all, _ := math.Lgamma(float64(r.n + 1))
	side, _ := math.Lgamma(float64(half + 1))
	ways := all - 2*side // logarithm of the number of ways to divide n draws into a lower and an upper half

	below := 0.0
	for i, v := range x {
		upto := r.atLeast(half, i+1)
		both := upto - below // probability that the lower one is the i-th value; after the loop, that both are
		below = upto
		if both < negligible {
			continue
		}
		for j := i + 1; j < r.n; j++ {
			p := math.Exp(ways + edge[i] + edge[r.n-1-j])
			if p < negligible {
				break // the next ones are even smaller
			}
			r.add(midpoint(v, x[j]), p)
			both -= p
		}
		r.add(v, both)
	}
}

// atLeast returns the probability that k or more of n draws are among the first i values.
func (r *medianDistribution) atLeast(k, i int) float64 {
	if i == r.n {
		return 1
	}
	return distuv.Binomial{N: float64(r.n), P: r.share(i)}.Survival(float64(k - 1))
}

func (r *medianDistribution) share(i int) float64 { return float64(i) / float64(r.n) }

func (r *medianDistribution) add(median, weight float64) {
	if weight >= negligible {
		r.medians = append(r.medians, median)
		r.weights = append(r.weights, weight)
	}
}

// median returns the median of values in ascending order.
func median(x []float64) float64 {
	n := len(x)
	if n%2 == 1 {
		return x[n/2]
	}
	return midpoint(x[n/2-1], x[n/2])
}

// midpoint returns the mean of two values, the lower first. It adds halves, because the sum of two
// large values may be infinite. Half of the smallest number is zero, hence the bounds. If one value
// is -Inf and the other +Inf, which means that both places fail equally often, it returns 0.
func midpoint(low, high float64) float64 {
	if math.IsInf(low, -1) && math.IsInf(high, 1) {
		return 0
	}
	return min(max(low/2+high/2, low), high)
}

// clampInfinite replaces infinite values by the lowest or the highest finite value, so that there is a
// spread. It returns none if no value is finite.
func clampInfinite(ascending []float64) []float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range ascending {
		if finite(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	all := make([]float64, 0, len(ascending))
	for _, v := range ascending {
		if low <= high {
			all = append(all, min(max(v, low), high))
		}
	}
	return all
}
