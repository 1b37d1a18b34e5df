// Package stats says how far to believe a table of measurements. It is pure: the same values give the same answer.
//
// The figure of a row is the median over rounds of the ratio of a setting to the bare host in the same round. A ratio of medians would
// keep what the rounds share, such as a host that gets slower in the night or a neighbour that wakes up; in the ratio within a round it
// cancels. With noise of 2 % and a drift of 30 % over ten rounds, the ratio of medians is off by half as much again (TestDrift: 1.75 % against
// 1.16 %). All is done with logarithms, so that a ratio and its inverse, a rate and a time, are judged alike.
package stats

import (
	"math"
	"slices"
)

// Margin is the difference that matters: a ratio within 1 ± Margin is the same for whoever runs the host.
const Margin = 0.05

// Enough is the number of rounds, with a value of the setting and of bare, below which nothing is decided.
const Enough = 5

// A Row holds the values of one figure in one setting, by kept round: same order and length. A value that is NaN, infinite, zero or
// negative has no ratio, and its round does not count for the row.
type Row struct {
	Setting []float64
	Base    []float64 // bare
	Control []float64 // bare once more, the A/A control; none: there is none to be beyond
}

// Judged is what a row comes to. Ratios are setting to base. Without Enough rounds P and Adjusted are 1; without any, ratios are 0.
type Judged struct {
	N           int // rounds that count
	Ratio       float64
	Low, High   float64 // 95 % interval of Ratio
	P           float64 // how probable such a ratio is if the true one is 1
	Adjusted    float64 // P, corrected by Holm over the table
	ControlLow  float64 // the A/A band: 95 % interval of control to base
	ControlHigh float64
	Verdict     Verdict
}

// A Verdict is what may be said of a row.
type Verdict string

// The verdicts.
const (
	Same      Verdict = "same"    // the interval lies wholly within 1 ± Margin
	Differs   Verdict = "differs" // it lies wholly outside, and wholly beyond the A/A band, and Adjusted is below 0.05
	Undecided Verdict = "undecided"
)

// Judge judges a whole table, since Holm's correction needs all of its rows. The seed is not needed: see Summarize.
func Judge(rows []Row, _ uint64) []Judged {
	judged := make([]Judged, len(rows))
	var tested []int
	var p []float64
	for i, row := range rows {
		judged[i] = row.compare()
		if judged[i].N >= Enough {
			tested = append(tested, i)
			p = append(p, judged[i].P)
		}
	}
	for k, adjusted := range holm(p) {
		judged[tested[k]].Adjusted = adjusted
	}
	for i, row := range rows {
		judged[i].Verdict = judged[i].verdict(row.controlled())
	}
	return judged
}

// compare does all that concerns a row alone.
func (row Row) compare() Judged {
	j := Judged{P: 1, Adjusted: 1}
	logs := logRatios(row.Setting, row.Base)
	j.N = len(logs)
	if j.N == 0 {
		return j
	}
	r := resample(logs)
	low, high := r.interval()
	j.Ratio, j.Low, j.High = ratio(r.median), ratio(low), ratio(high)
	if j.N >= Enough {
		j.P = r.p()
	}
	if control := logRatios(row.Control, row.Base); len(control) > 0 {
		low, high = resample(control).interval()
		j.ControlLow, j.ControlHigh = ratio(low), ratio(high)
	}
	return j
}

// controlled says whether the A/A band, if there is one, has rounds enough to be relied on.
func (row Row) controlled() bool {
	return len(row.Control) == 0 || len(logRatios(row.Control, row.Base)) >= Enough
}

func (j Judged) verdict(controlled bool) Verdict {
	outside := j.High < 1-Margin || j.Low > 1+Margin
	beyond := j.ControlLow == 0 || j.High < j.ControlLow || j.Low > j.ControlHigh
	switch {
	case j.N < Enough:
		return Undecided
	case j.Low >= 1-Margin && j.High <= 1+Margin:
		return Same
	case outside && beyond && controlled && j.Adjusted < level:
		return Differs
	}
	return Undecided
}

// Wide says whether more rounds are due: some row has an interval of its ratio that is wider than width, a share of the ratio (0.1: from
// 0.95 to 1.05), or values in too few rounds. It looks at widths only. To go on until a row is decided would be to ask again and again
// until chance says yes.
func Wide(rows []Row, _ uint64, width float64) bool {
	return slices.ContainsFunc(rows, func(row Row) bool {
		logs := logRatios(row.Setting, row.Base)
		if len(logs) < Enough {
			return len(logs) > 0 // more rounds do not help a test that always fails
		}
		r := resample(logs)
		low, high := r.interval()
		return ratio(high)-ratio(low) > width*ratio(r.median)
	})
}

// logRatios gives the logarithms of the ratios within rounds, ascending.
func logRatios(above, below []float64) []float64 {
	var logs []float64
	for i := range min(len(above), len(below)) {
		if a, b := above[i], below[i]; a > 0 && b > 0 && finite(a) && finite(b) {
			logs = append(logs, math.Log(a)-math.Log(b))
		}
	}
	slices.Sort(logs)
	return logs
}

func ratio(log float64) float64 { return bounded(math.Exp(log)) }
