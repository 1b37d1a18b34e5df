package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// level is the probability that an interval does not cover the true value.
const level = 0.05

// interval returns the 95 % interval of the median: the expanded percentile interval (Hesterberg,
// "What Teachers Should Know about the Bootstrap", 2014, section 4.3). A percentile interval of n
// values is too narrow, as if one used 1.96 instead of Student's t with n-1 degrees and divided by
// n instead of n-1. Therefore its percentiles are moved outwards accordingly.
//
// It was chosen by simulation of 20 000 samples each of normal, uniform, heavy-tailed (t with 2 and
// 3 degrees), contaminated, bimodal and skew noise. The plain percentile interval covered the
// median in 87 % for 7 values, and in 93 to 94 % for 11, 20 or 30. This interval covered it in 95.5
// to 98.6 % for 6 to 30 values, whatever the shape, but in 93.5 % for 5 and for 11. The interval
// median ± t × standard error covered 93 to 99 %, depending on the shape, and was wider by a tenth
// at 10 values. BCa has nothing to correct: the median is too high as often as too low, and its
// acceleration, from the jackknife, is meaningless for a median. TestCoverage repeats a part of
// this.
func (r medianDistribution) interval() (low, high float64) {
	if r.n < 2 {
		return r.median, r.median
	}
	n := float64(r.n)
	t := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(1 - level/2)
	tail := distuv.UnitNormal.Survival(t * math.Sqrt(n/(n-1)))
	return stat.Quantile(tail, stat.Empirical, r.medians, r.weights),
		stat.Quantile(1-tail, stat.Empirical, r.medians, r.weights)
}

// p returns the probability of a median as far from zero as this one if the true median is zero. It
// compares the median divided by its bootstrap standard error with Student's t.
//
// A sign-flip or permutation test would be exact, but its p cannot be less than 2/2ⁿ: 0.002 for ten
// rounds. For Holm's correction in a table of more than 25 rows that is too much, however large the
// difference. The bootstrap standard error is based on the few values in the middle. Its relative
// error falls as the fourth root of n (Hall and Martin, Probability Theory and Related Fields 80,
// 1988), so the degrees of freedom are proportional to the square root. With n-1, p would be up to
// five times too small in the tail that Holm's correction uses. With 2√n, in a simulation of 40 000
// samples of 5 to 30 values with a median of zero (normal, heavy-tailed, contaminated, bimodal,
// differences of uniform), p was below 0.05, 0.05/12 and 0.05/60 no more often than it should be.
// TestFalseAlarms repeats a part of this.
func (r medianDistribution) p() float64 {
	if r.median == 0 || r.n < 2 {
		return 1
	}
	n := float64(r.n)
	t := math.Abs(r.median) / (r.deviation() * math.Sqrt(n/(n-1)))
	return 2 * distuv.StudentsT{Sigma: 1, Nu: min(n-1, 2*math.Sqrt(n))}.Survival(t)
}

// deviation returns the standard deviation of the medians of resamples, which is the standard error
// of the median.
func (r medianDistribution) deviation() float64 {
	return math.Sqrt(stat.MomentAbout(2, r.medians, stat.Mean(r.medians, r.weights), r.weights))
}

// pOfMean returns p of the mean instead of the median, by Student's t for values with a mean of
// zero. If values are bimodal, the median jumps from one mode to the other, and the bootstrap
// underestimates how far. The mean does not jump. In a simulation of 2000 pairs of runs of 6 to 30
// values from the same two modes, p of the medians was below 0.05 in up to 13 %, and that of the
// means in no more than 6 %. Means alone are not enough, because one outlier moves them.
func pOfMean(x []float64) float64 {
	n := float64(len(x))
	m, v := stat.MeanVariance(x, nil)
	if n < 2 || m == 0 {
		return 1
	}
	if v == 0 {
		return 0
	}
	return 2 * distuv.StudentsT{Sigma: 1, Nu: n - 1}.Survival(math.Abs(m)/math.Sqrt(v/n))
}

// pOfMeanDifference is like pOfMean, for the difference of two samples (Welch, Biometrika 34, 1947).
func pOfMeanDifference(x, y []float64) float64 {
	mx, vx := stat.MeanVariance(x, nil)
	my, vy := stat.MeanVariance(y, nil)
	nx, ny := float64(len(x)), float64(len(y))
	vx, vy = vx/nx, vy/ny
	switch {
	case nx < 2 || ny < 2 || mx == my:
		return 1
	case vx+vy == 0:
		return 0
	}
	freedom := (vx + vy) * (vx + vy) / (vx*vx/(nx-1) + vy*vy/(ny-1))
	return 2 * distuv.StudentsT{Sigma: 1, Nu: freedom}.Survival(math.Abs(mx-my)/math.Sqrt(vx+vy))
}
