package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// A resampled is the distribution of the median of samples that are drawn from values with
// replacement: the bootstrap.
//
// It is not drawn but computed. A resample of n values has a median that is one of the n values or,
// for an even n, the mean of two, and how probable each of these is follows from counting (Efron,
// Annals of Statistics 7, 1979; Maritz and Jarrett, JASA 73, 1978). It is what drawing more and
// more resamples tends to, without the noise of drawing: whoever computes it gets the same interval
// from the same values, and the small tails that an interval of few rounds is made of are exact.
type resampled struct {
	n       int // values
	median  float64
	medians []float64 // of resamples, ascending
	weights []float64 // how probable each is; their sum is 1
}

// negligible is a probability that changes no interval.
const negligible = 1e-15

// resample takes values in ascending order, of which there must be one. The least and the greatest
// may be infinite.
func resample(x []float64) resampled {
	r := resampled{n: len(x), median: median(x)}
	if r.n%2 == 1 {
		r.odd(x)
	} else {
		r.even(x)
	}
	stat.SortWeighted(r.medians, r.weights)
	return r
}

// odd: the median is the i-th value if the middle one of n draws, in order of size, is.
func (r *resampled) odd(x []float64) {
	below := 0.0
	for i, v := range x {
		upto := r.atLeast((r.n+1)/2, i+1)
		r.add(v, upto-below)
		below = upto
	}
}

// even: the median is the mean of the i-th and the j-th value if the draws n/2 and n/2+1, in order
// of size, are these.
func (r *resampled) even(x []float64) {
	half := r.n / 2
	// The logarithm of how probable it is that the greatest of n/2 draws is the i-th value; so is it
	// that the least is the i-th from above.
	edge := make([]float64, r.n)
	for i := range edge {
		edge[i] = math.Log(math.Pow(r.share(i+1), float64(half)) - math.Pow(r.share(i), float64(half)))
	}
	all, _ := math.Lgamma(float64(r.n + 1))
	side, _ := math.Lgamma(float64(half + 1))
	ways := all - 2*side // in which n draws fall into a lower and an upper half

	below := 0.0
	for i, v := range x {
		upto := r.atLeast(half, i+1)
		both := upto - below // that the lower of the two is the i-th value; less what follows, that both are
		below = upto
		if both < negligible {
			continue
		}
		for j := i + 1; j < r.n; j++ {
			p := math.Exp(ways + edge[i] + edge[r.n-1-j])
			if p < negligible {
				break // and smaller still for the next
			}
			r.add(between(v, x[j]), p)
			both -= p
		}
		r.add(v, both)
	}
}

// atLeast returns how probable it is that k or more of n draws are among the first i values.
func (r *resampled) atLeast(k, i int) float64 {
	if i == r.n {
		return 1
	}
	return distuv.Binomial{N: float64(r.n), P: r.share(i)}.Survival(float64(k - 1))
}

func (r *resampled) share(i int) float64 { return float64(i) / float64(r.n) }

func (r *resampled) add(median, weight float64) {
	if weight >= negligible {
		r.medians = append(r.medians, median)
		r.weights = append(r.weights, weight)
	}
}

// median of values in ascending order.
func median(x []float64) float64 {
	n := len(x)
	if n%2 == 1 {
		return x[n/2]
	}
	return between(x[n/2-1], x[n/2])
}

// between is the mean of two values, the lower first. Halves are added, because the sum of two
// large values may be infinite; half of the smallest is zero, hence the bounds. Of a place that
// fails as often as the other does, nothing is known to be better.
func between(low, high float64) float64 {
	if math.IsInf(low, -1) && math.IsInf(high, 1) {
		return 0
	}
	return min(max(low/2+high/2, low), high)
}

// tamed takes the greatest finite value for what is infinite, so that a spread can be told. Without
// a finite value, there is none.
func tamed(ascending []float64) []float64 {
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
