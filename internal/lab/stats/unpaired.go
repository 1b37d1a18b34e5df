package stats

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// A Run holds the values of one figure in one run, as in a Comparison.
type Run struct {
	Values    []float64
	Instances []int
}

// A Pair holds the values of one figure from runs before and after a change. Rounds of two runs are
// not related, so their numbers may differ. Values that are not finite or not above zero do not
// count.
type Pair struct {
	Kind, Figure  string // as in a Comparison
	Family        int
	Before, After []Run
	Former        []Run // of the same experiment on the same host; shows how much runs differ without a change
	Disturbed     bool  // other processes used the host in too many rounds of a run
	// ControlLow and ControlHigh are the A/A band of bare within the runs, or 0 if unknown.
	ControlLow, ControlHigh float64
}

// JudgePairs judges a table of runs before and after a change. Ratio is that of the medians, after
// to before, and N is the smaller number of values. Effects of whole rounds do not cancel, so
// intervals are wider than those of Judge. Other changes between the runs, such as the temperature
// of the room, are included in the difference.
//
// A run, like an instance, is only one sample of a setting: the layout of memory since the last
// boot or the heat of the day affect all of its rounds. Therefore, if there are several runs, runs
// are compared. With one run on each side, the result says only how these two differ.
func JudgePairs(pairs []Pair) []Result {
	blocks := blocksOfPairs(pairs)
	judged := make([]Result, len(pairs))
	for i, pair := range pairs {
		if pair.isSingle() {
			judged[i] = pair.compare(blocks[i])
		} else {
			judged[i] = pair.compareRuns()
		}
	}
	adjust(judged, func(i int) int { return pairs[i].Family })
	for i, pair := range pairs {
		j := &judged[i]
		j.controlled = true
		if j.Verdict = j.verdict(); pair.Disturbed {
			j.Verdict = Unmeasurable
		} else if pair.isSingle() && (j.Verdict == Differs || j.Verdict == Slight) {
			j.Verdict = pair.differVerdict(*j)
		}
	}
	return judged
}

// isSingle reports whether there is only one run on each side.
func (pair Pair) isSingle() bool { return len(pair.Before) == 1 && len(pair.After) == 1 }

// blocksOfPairs tests single runs for autocorrelation, and returns the longer block of each pair.
// Pairs of several runs need none, because whole runs are compared.
func blocksOfPairs(pairs []Pair) []Serial {
	var all []Series
	var of []int
	for i, pair := range pairs {
		if pair.isSingle() {
			for _, run := range []Run{pair.Before[0], pair.After[0]} {
				all, of = append(all, Series{pair.Kind, pair.Figure, logs(run.Values), run.Instances}), append(of, i)
			}
		}
	}
	blocks := make([]Serial, len(pairs))
	for k, serial := range Blocks(all) {
		b := &blocks[of[k]]
		b.BlockLength, b.Suspected = max(b.BlockLength, serial.BlockLength), b.Suspected || serial.Suspected
	}
	return blocks
}

// compare compares two single runs.
func (pair Pair) compare(serial Serial) Result {
	j := Result{P: 1, Adjusted: 1, ControlLow: pair.ControlLow, ControlHigh: pair.ControlHigh,
		BlockLength: serial.BlockLength}
	before, after := pair.Before[0].sample(), pair.After[0].sample()
	j.N, j.Instances = min(before.values(), after.values()), min(len(before), len(after))
	if j.N == 0 {
		return j
	}
	j.Bimodal = isBimodal(slices.Concat(before...)) || isBimodal(slices.Concat(after...))
	before, after = before.blocks(j.BlockLength), after.blocks(j.BlockLength)
	if !j.decidable() {
		x, y := before.resamplingUnits(), after.resamplingUnits()
		j.Ratio, j.Low, j.High, j.Range = ratio(median(y)-median(x)), ratio(y[0]-x[len(x)-1]), ratio(y[len(y)-1]-x[0]), true
		return j
	}
	g := medianDifference{resample(before.resamplingUnits()), resample(after.resamplingUnits())}
	low, high := g.interval()
	j.Ratio, j.Low, j.High = ratio(g.after.median-g.before.median), ratio(low), ratio(high)
	if j.P = g.p(); j.Bimodal {
		j.P = max(j.P, pOfMeanDifference(before.medians(), after.medians()))
	}
	return j
}

func (run Run) sample() sample { return groupByInstance(logs(run.Values), run.Instances) }

// logs returns the logarithms of values, or NaN where there is none.
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

// medianDifference is the distribution of the difference of two medians, each resampled separately.
type medianDifference struct{ before, after medianDistribution }

// interval expands the percentiles as resampled.interval does, with the degrees of freedom of both
// (Welch, Biometrika 34, 1947).
func (g medianDifference) interval() (low, high float64) {
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

// p is like that of resampled, with half of the degrees of freedom to be on the safe side.
func (g medianDifference) p() float64 {
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

// error returns the standard error of the difference and its degrees of freedom.
func (g medianDifference) error() (se, freedom float64) {
	a, b := g.before.variance(), g.after.variance()
	na, nb := float64(g.before.n-1), float64(g.after.n-1)
	if a+b == 0 {
		return 0, min(na, nb)
	}
	return math.Sqrt(a + b), (a + b) * (a + b) / (a*a/na + b*b/nb)
}

// variance returns the variance of the median, corrected for the small number of values.
func (r medianDistribution) variance() float64 {
	d := r.deviation()
	return d * d * float64(r.n) / float64(r.n-1)
}

// quantile returns where the distribution of the difference reaches p. To enumerate the differences
// of all pairs of medians would take up to n⁴/4 steps. The probability of a difference up to x
// takes only one pass over the medians of one side.
func (g medianDifference) quantile(p float64) float64 {
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
	// After sixty halvings the remaining interval is below the resolution of a float64.
	for range 60 {
		if middle := low + (high-low)/2; upto(middle) < p {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}
