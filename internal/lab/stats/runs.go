package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// RunsDiffer is the verdict for two single runs that differ. It says nothing about what changed between
// them.
const RunsDiffer Verdict = "these two runs differ"

// RunsDifferAsUsual is the verdict for two single runs that differ by no more than former runs, between
// which nothing had changed.
const RunsDifferAsUsual Verdict = "these two runs differ as former ones did"

// levels returns the figures of runs: the logarithms of their medians. Runs without a value are
// omitted.
func levels(runs []Run) (all []float64) {
	for _, run := range runs {
		if s := run.sample(); len(s) > 0 {
			all = append(all, median(s.resamplingUnits()))
		}
	}
	return all
}

// compareRuns compares two groups of runs with Student's t of their figures. The spread of runs
// already includes what rounds and instances contribute. Runs are too few for resampling. Former
// runs of the same experiment contribute to the estimate of the spread. The A/A bands of single
// runs are not used: the widest of many is as wide as the luck of a run, which is part of the
// spread of runs.
func (pair Pair) compareRuns() Result {
	j := Result{P: 1, Adjusted: 1, BlockLength: 1}
	before, after := levels(pair.Before), levels(pair.After)
	j.N = min(len(before), len(after))
	if j.N == 0 {
		return j
	}
	former := levels(pair.Former)
	if len(former) < 2 {
		former = nil // a single run has no spread
	}
	j.Instances = len(before) + len(after)
	middle := stat.Mean(after, nil) - stat.Mean(before, nil)
	j.Ratio = ratio(middle)
	se, freedom := spread(before, after, former)
	if j.Range = len(before)+len(after)+len(former) < MinInstances; j.Range {
		low, high := math.Inf(1), math.Inf(-1)
		for _, x := range before {
			for _, y := range after {
				low, high = min(low, y-x), max(high, y-x)
			}
		}
		j.Low, j.High = ratio(low), ratio(high)
		j.Instances = 0 // too few for a decision
		return j
	}
	j.Instances = max(j.Instances, MinInstances)
	t := distuv.StudentsT{Sigma: 1, Nu: freedom}
	reach := t.Quantile(1-level/2) * se
	j.Low, j.High = ratio(middle-reach), ratio(middle+reach)
	if se > 0 {
		j.P = 2 * t.Survival(math.Abs(middle)/se)
	} else if middle != 0 {
		j.P = 0
	}
	return j
}

// spread returns the standard error of the difference of two groups of runs, and its degrees of
// freedom. With fewer than MinInstances former runs and at least two runs on each side, each side has its
// own spread (Welch, Biometrika 34, 1947). Otherwise the spread is assumed to be the same for all.
func spread(before, after, former []float64) (se, freedom float64) {
	n, m := float64(len(before)), float64(len(after))
	if len(former) < MinInstances && n > 1 && m > 1 {
		a, b := stat.Variance(before, nil)/n, stat.Variance(after, nil)/m
		if a+b == 0 {
			return 0, n + m - 2
		}
		return math.Sqrt(a + b), (a + b) * (a + b) / (a*a/(n-1) + b*b/(m-1))
	}
	squares, freedom := 0.0, 0.0
	for _, x := range [][]float64{before, after, former} {
		if len(x) > 1 {
			squares += stat.Variance(x, nil) * float64(len(x)-1)
			freedom += float64(len(x) - 1)
		}
	}
	if freedom == 0 {
		return 0, 0
	}
	return math.Sqrt(squares / freedom * (1/n + 1/m)), freedom
}

// differVerdict returns the verdict for two single runs that differ: RunsDifferAsUsual if former runs
// differ as much, else RunsDiffer.
func (pair Pair) differVerdict(j Result) Verdict {
	former := levels(pair.Former)
	if len(former) < MinInstances {
		return RunsDiffer
	}
	se, freedom := spread(levels(pair.Before), levels(pair.After), former)
	if math.Abs(math.Log(j.Ratio)) <= (distuv.StudentsT{Sigma: 1, Nu: freedom}).Quantile(1-level/2)*se {
		return RunsDifferAsUsual
	}
	return RunsDiffer
}
