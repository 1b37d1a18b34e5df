package stats

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// A Pair holds the values of one figure from two runs, whose rounds have nothing to do with each other: their numbers may differ. Values
// that are no finite numbers above zero do not count.
type Pair struct {
	Before, After                   []float64
	BeforeInstances, AfterInstances []int // of their rounds, as in a Row
	Family                          int   // as in a Row
	Disturbed                       bool  // the host was, in too many of the rounds of one
	// ControlLow and ControlHigh are how far apart bare and bare again were within the runs; 0: not known.
	ControlLow, ControlHigh float64
}

// JudgePairs judges a table of two runs: Ratio is that of the medians, after to before, and N the smaller number of values. It differs from
// Judge only in that nothing cancels that a round shares, so intervals are wider; and what changed between the runs, such as the weather
// in the room, is within the difference.
func JudgePairs(pairs []Pair) []Judged {
	judged := make([]Judged, len(pairs))
	for i, pair := range pairs {
		judged[i] = pair.compare()
	}
	adjust(judged, func(i int) int { return pairs[i].Family })
	for i := range judged {
		judged[i].controlled = true
		if judged[i].Verdict = judged[i].verdict(); pairs[i].Disturbed {
			judged[i].Verdict = Unmeasurable
		}
	}
	return judged
}

func (pair Pair) compare() Judged {
	j := Judged{P: 1, Adjusted: 1, ControlLow: pair.ControlLow, ControlHigh: pair.ControlHigh, Block: 1}
	before, after := gather(logs(pair.Before), pair.BeforeInstances), gather(logs(pair.After), pair.AfterInstances)
	j.N, j.Instances = min(before.values(), after.values()), min(len(before), len(after))
	if j.N == 0 {
		return j
	}
	g := apart{resample(before.units()), resample(after.units())}
	low, high := g.interval()
	j.Ratio, j.Low, j.High = ratio(g.after.median-g.before.median), ratio(low), ratio(high)
	j.Modes = modes(slices.Concat(before...)) || modes(slices.Concat(after...))
	if j.decidable() {
		j.P = g.p()
		if j.Modes {
			j.P = max(j.P, ofTwoMeans(before.medians(), after.medians()))
		}
	}
	return j
}

// logs gives the logarithms of values; NaN where there is none.
func logs(x []float64) []float64 {
	all := make([]float64, len(x))
	for i, v := range x {
		all[i] = math.NaN()
		if v > 0 && finite(v) {
			all[i] = math.Log(v)
		}
	}
	return all
}

// apart is the difference of two medians, each resampled on its own.
type apart struct{ before, after resampled }

// interval expands the percentiles as resampled.interval does, with the degrees of freedom of both (Welch, Biometrika 34, 1947).
func (g apart) interval() (low, high float64) {
	middle := g.after.median - g.before.median
	if g.before.n < 2 || g.after.n < 2 {
		return middle, middle
	}
	plain := math.Hypot(g.before.deviation(), g.after.deviation())
	if plain == 0 {
		return middle, middle
	}
	se, freedom := g.error()
	t := distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(1 - level/2)
	tail := distuv.UnitNormal.Survival(t * se / plain)
	return g.quantile(tail), g.quantile(1 - tail)
}

// p as of resampled, with half of the degrees of freedom: on the safe side of what is told there.
func (g apart) p() float64 {
	difference := g.after.median - g.before.median
	if difference == 0 {
		return 1
	}
	se, freedom := g.error()
	if se == 0 {
		return 0
	}
	return 2 * distuv.StudentsT{Sigma: 1, Nu: freedom / 2}.Survival(math.Abs(difference)/se)
}

// error gives the standard error of the difference, and its degrees of freedom.
func (g apart) error() (se, freedom float64) {
	a, b := g.before.variance(), g.after.variance()
	na, nb := float64(g.before.n-1), float64(g.after.n-1)
	if a+b == 0 {
		return 0, min(na, nb)
	}
	return math.Sqrt(a + b), (a + b) * (a + b) / (a*a/na + b*b/nb)
}

// variance is that of the median, corrected for its few values.
func (r resampled) variance() float64 {
	d := r.deviation()
	return d * d * float64(r.n) / float64(r.n-1)
}

// quantile finds where the distribution of the difference reaches p. That of the difference of every two medians would have up to n⁴/4 steps;
// how probable a difference up to x is takes one pass over the medians of one side.
func (g apart) quantile(p float64) float64 {
	sums := make([]float64, len(g.after.weights)+1)
	for i, w := range g.after.weights {
		sums[i+1] = sums[i] + w
	}
	upto := func(x float64) float64 {
		total := 0.0
		for i, m := range g.before.medians {
			k := sort.SearchFloat64s(g.after.medians, math.Nextafter(m+x, math.Inf(1)))
			total += g.before.weights[i] * sums[k]
		}
		return total
	}
	last := len(g.before.medians) - 1
	low, high := g.after.medians[0]-g.before.medians[last], g.after.medians[len(g.after.medians)-1]-g.before.medians[0]
	// Sixty halvings leave nothing between them that a float64 could tell.
	for range 60 {
		if middle := low + (high-low)/2; upto(middle) < p {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}
