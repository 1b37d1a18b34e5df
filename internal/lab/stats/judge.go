// Package stats decides how reliable the differences in a table of measurements are.
//
// It is pure: the same values yield the same result.
//
// The figure of a row is the median over instances of the ratio of a setting to the bare host in
// the same round. A ratio of medians would include what affects whole rounds, such as a host that
// gets slower at night or a neighbour that becomes active. In the ratio within a round, that
// cancels. With noise of 2 % and a drift of 30 % over ten rounds, the error of the ratio of medians
// is half as large again (TestDrift: 1.75 % against 1.07 %). All calculations use logarithms, so
// that a ratio and its inverse, a rate and a time, are judged alike.
package stats

import (
	"math"
	"slices"
)

// Margin is the difference that matters: ratios within 1 ± Margin count as equal.
const Margin = 0.05

// MinInstances is the minimum number of instances with values of the setting and of bare for any verdict
// but Undecided.
const MinInstances = 5

// A Comparison holds the values of one figure in one setting by kept round. All slices have the same order
// and length. A value that is NaN or negative has no ratio, and its round does not count for the
// row.
type Comparison struct {
	Kind, Figure string // kind of the test and name of the figure, by which autocorrelation is tested
	Family       int    // rows of one family share the correction of p for their number
	Setting      []float64
	Baseline     []float64   // values of bare
	Worst        float64     // value of a failed round: 0 for a rate, infinity for a time
	Controls     []AAControl // A/A controls, or none if there is no band to exceed
	Instances    []int       // instance of the nodes by round, or none if each round had its own instance
	Disturbed    bool        // other processes used the host in too many rounds
	Alike        bool        // bare was disturbed as much as the setting, so that the A/A controls show the effect
}

// An AAControl holds the values of two equal settings by kept round.
type AAControl struct{ A, B []float64 }

// Result is the result of a row. Ratios are setting to base. With fewer than MinInstances, P
// and Adjusted are 1. Without any round, ratios are 0.
type Result struct {
	N           int // number of rounds that count
	Instances   int // number of instances in these rounds
	Ratio       float64
	Low, High   float64 // 95 % interval of Ratio
	Range       bool    // too few values for an interval: Low and High are the lowest and the highest
	P           float64 // probability of such a ratio if the true one is 1
	Adjusted    float64 // P after Holm's correction over the family
	ControlLow  float64 // the A/A band: it covers the 95 % intervals of the controls
	ControlHigh float64
	Spread      Components // of the ratio
	Bimodal     bool       // the values of the setting or of bare are bimodal
	BlockLength int        // number of consecutive instances that count as one because of autocorrelation, or 1
	Suspected   bool       // possible autocorrelation: more rounds are needed to tell
	Failures    Failures
	Verdict     Verdict
	controlled  bool // the A/A band is reliable
}

// A Verdict is the conclusion for a row.
type Verdict string

// The verdicts.
const (
	Same Verdict = "same" // the interval is completely within 1 ± Margin
	// the interval is completely outside 1 ± Margin and the A/A band, and Adjusted is below 0.05
	Differs Verdict = "differs"
	// like Differs, but the interval overlaps 1 ± Margin: significant, but possibly too small to
	// matter
	Slight       Verdict = "differs slightly"
	Fails        Verdict = "fails" // the setting fails in more instances than bare, and not by chance
	Undecided    Verdict = "undecided"
	Unmeasurable Verdict = "not measurable now" // the host was disturbed, and its A/A band is too wide
)

// Judge judges a whole table. Holm's correction and the test for autocorrelation need all of its
// rows.
func Judge(rows []Comparison) []Result {
	blocks := blocksOf(rows)
	judged := make([]Result, len(rows))
	bands := map[[2]string]band{} // rows of one figure have the same band
	for i, row := range rows {
		of := [2]string{row.Kind, row.Figure}
		b, known := bands[of]
		if !known || row.Figure == "" {
			b = bandOf(row.Controls, row.Instances, blocks[i].BlockLength)
			if len(row.Controls) > 0 {
				bands[of] = b
			}
		}
		if len(row.Controls) == 0 {
			b = band{controlled: true}
		}
		judged[i] = row.compare(blocks[i], b)
	}
	adjust(judged, func(i int) int { return rows[i].Family })
	adjustFailures(rows, judged)
	for i, row := range rows {
		j := &judged[i]
		if j.Verdict = j.verdict(); row.Disturbed && (!row.Alike || !j.isCalm()) {
			j.Verdict = Unmeasurable
		}
	}
	return judged
}

// blocksOf tests the ratios of all rows and of their controls for autocorrelation.
func blocksOf(rows []Comparison) []Serial {
	all := make([]Series, len(rows))
	seen := map[[2]string]bool{}
	for i, row := range rows {
		all[i] = Series{row.Kind, row.Figure, logRatios(row.Setting, row.Baseline), row.Instances}
	}
	for _, row := range rows {
		if of := [2]string{row.Kind, row.Figure}; row.Figure == "" || !seen[of] {
			seen[of] = true
			for _, c := range row.Controls {
				all = append(all, Series{row.Kind, row.Figure, logRatios(c.A, c.B), row.Instances})
			}
		}
	}
	return Blocks(all)[:len(rows)]
}

// compare computes everything that concerns only this row.
func (row Comparison) compare(serial Serial, controls band) Result {
	s := groupByInstance(logRatios(row.Setting, row.Baseline), row.Instances)
	j := Result{P: 1, Adjusted: 1, N: s.values(), Instances: len(s)}
	j.BlockLength, j.Suspected = serial.BlockLength, serial.Suspected
	j.ControlLow, j.ControlHigh, j.controlled = controls.low, controls.high, controls.controlled
	j.Failures = row.failures(serial.BlockLength)
	if j.N == 0 {
		return j
	}
	j.Spread = s.components()
	j.Bimodal = row.isBimodal()
	s = s.blocks(serial.BlockLength)
	units := s.resamplingUnits()
	if j.Range = !j.decidable(); j.Range {
		j.Ratio, j.Low, j.High = ratio(median(units)), ratio(units[0]), ratio(units[len(units)-1])
		return j
	}
	r := resample(units)
	low, high := r.interval()
	j.Ratio, j.Low, j.High = ratio(r.median), ratio(low), ratio(high)
	switch {
	case math.IsInf(r.median, 0): // Failures describes this
	case math.IsInf(units[0], 0) || math.IsInf(units[len(units)-1], 0):
		j.P = resample(clampInfinite(units)).p()
	default:
		j.P = r.p()
	}
	if j.Bimodal {
		j.P = max(j.P, pOfMean(s.finite().medians()))
	}
	return j
}

// interval returns the median of a nonempty sample and its 95 % interval. With fewer than
// MinInstances, it returns the range instead and sets ranged.
func (s sample) interval() (middle, low, high float64, ranged bool) {
	units := s.resamplingUnits()
	if len(s) < MinInstances {
		return median(units), units[0], units[len(units)-1], true
	}
	r := resample(units)
	low, high = r.interval()
	return r.median, low, high, false
}

// isBimodal reports whether the values themselves, not the ratios, are bimodal.
func (row Comparison) isBimodal() bool {
	var setting, base []float64
	for i := range min(len(row.Setting), len(row.Baseline)) {
		if a, b := math.Log(row.Setting[i]), math.Log(row.Baseline[i]); finite(a) && finite(b) {
			setting, base = append(setting, a), append(base, b)
		}
	}
	return isBimodal(setting) || isBimodal(base)
}

// A band is the A/A band of a figure. It is controlled if all controls have enough instances to be
// reliable.
type band struct {
	low, high  float64
	controlled bool
}

// bandOf returns a band that covers the 95 % intervals of the ratios of the controls, or their
// ranges if there are too few instances. Its bounds are 0 if there are no controls.
func bandOf(controls []AAControl, instances []int, block int) band {
	b := band{controlled: true}
	for _, c := range controls {
		s := groupByInstance(logRatios(c.A, c.B), instances)
		b.controlled = b.controlled && len(s)/max(1, block) >= MinInstances
		if len(s) == 0 {
			continue
		}
		_, low, high, _ := s.blocks(max(1, block)).interval()
		if b.low == 0 {
			b.low, b.high = ratio(low), ratio(high)
		}
		b.low, b.high = min(b.low, ratio(low)), max(b.high, ratio(high))
	}
	return b
}

// Band returns the interval that covers the 95 % intervals of the ratios of the controls, or 0 if
// there are none. With too few instances for an interval it covers the ranges and sets ranged.
func Band(controls []AAControl, instances []int, block int) (low, high float64, ranged bool) {
	b := bandOf(controls, instances, block)
	return b.low, b.high, !b.controlled
}

// decidable reports whether there are enough instances, or enough blocks of them.
func (j Result) decidable() bool { return j.Instances/max(1, j.BlockLength) >= MinInstances }

// isCalm reports whether a row can be judged although other processes used the host: the whole A/A
// band is within the margin.
func (j Result) isCalm() bool {
	return j.controlled && j.ControlLow >= 1-Margin && j.ControlHigh <= 1+Margin
}

func (j Result) verdict() Verdict {
	outside := j.High < 1-Margin || j.Low > 1+Margin
	beyond := j.ControlLow == 0 || j.High < j.ControlLow || j.Low > j.ControlHigh
	sure := beyond && j.controlled && j.Adjusted < level && (j.High < 1 || j.Low > 1)
	switch {
	case j.Failures.more():
		return Fails
	case !j.decidable():
		return Undecided
	case j.Low >= 1-Margin && j.High <= 1+Margin:
		return Same
	case outside && sure:
		return Differs
	case sure:
		return Slight
	}
	return Undecided
}

// RoundsPerInstance returns how many rounds an instance should have if creating it costs as much as the given
// number of rounds (Kalibera and Jones, section 7). It is the square root of the ratio of the costs
// times the ratio of the variances, for the median row, or 0 if no row has variances.
func RoundsPerInstance(rows []Components, cost float64) float64 {
	var best []float64
	for _, c := range rows {
		if c.Known && c.Rounds > 0 {
			best = append(best, min(1e6, math.Sqrt(max(0, cost))*c.Rounds/max(c.Instances, 1e-9)))
		}
	}
	if len(best) == 0 {
		return 0
	}
	slices.Sort(best)
	return median(best)
}

// logRatios returns the logarithms of the ratios within rounds. A ratio is infinite if one of the
// two is the worst or the best possible value, and NaN if a value is missing or if both are
// extreme.
func logRatios(above, below []float64) []float64 {
	logs := make([]float64, min(len(above), len(below)))
	for i := range logs {
		if logs[i] = math.Log(above[i]) - math.Log(below[i]); above[i] < 0 || below[i] < 0 {
			logs[i] = math.NaN()
		}
	}
	return logs
}

func ratio(log float64) float64 { return bounded(math.Exp(log)) }
