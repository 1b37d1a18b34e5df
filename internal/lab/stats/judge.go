// Package stats says how far to believe a table of measurements. It is pure: the same values give the same answer.
//
// The figure of a row is the median over instances of the ratio of a setting to the bare host in the same round. A ratio of medians would
// keep what the rounds share, such as a host that gets slower in the night or a neighbour that wakes up; in the ratio within a round it
// cancels. With noise of 2 % and a drift of 30 % over ten rounds, the ratio of medians is off by half as much again (TestDrift: 1.75 % against
// 1.07 %). All is done with logarithms, so that a ratio and its inverse, a rate and a time, are judged alike.
package stats

import (
	"math"
	"slices"
)

// Margin is the difference that matters: a ratio within 1 ± Margin is the same for whoever runs the host.
const Margin = 0.05

// Enough is the number of instances, with a value of the setting and of bare, below which nothing is decided.
const Enough = 5

// A Row holds the values of one figure in one setting, by kept round: same order and length. A value that is NaN, infinite, zero or
// negative has no ratio, and its round does not count for the row.
type Row struct {
	Setting   []float64
	Base      []float64 // bare
	Controls  []Pairing // the same against the same, the A/A controls; none: there is nothing to be beyond
	Instances []int     // of the nodes, by round; none: each round had one of its own
	Disturbed bool      // the host was, in too many of the rounds
}

// A Pairing is two settings that are the same, by kept round.
type Pairing struct{ Again, Once []float64 }

// Judged is what a row comes to. Ratios are setting to base. Without Enough instances P and Adjusted are 1; without any round, ratios are 0.
type Judged struct {
	N           int // rounds that count
	Instances   int // in which they were done
	Ratio       float64
	Low, High   float64    // 95 % interval of Ratio
	P           float64    // how probable such a ratio is if the true one is 1
	Adjusted    float64    // P, corrected by Holm over the table
	ControlLow  float64    // the A/A band: what the 95 % intervals of the controls cover
	ControlHigh float64    //
	Spread      Components // of the ratio
	Modes       bool       // the values of the setting, or of bare, lie in two heaps
	Block       int        // instances in a row that count for one, since neighbours are too much alike; 1: they are not
	Verdict     Verdict
}

// A Verdict is what may be said of a row.
type Verdict string

// The verdicts.
const (
	Same         Verdict = "same"    // the interval lies wholly within 1 ± Margin
	Differs      Verdict = "differs" // it lies wholly outside, and wholly beyond the A/A band, and Adjusted is below 0.05
	Undecided    Verdict = "undecided"
	Unmeasurable Verdict = "not measurable now" // the host was disturbed
)

// Judge judges a whole table: Holm's correction needs all of its rows, and so does the search for autocorrelation.
func Judge(rows []Row) []Judged {
	samples := make([]sample, len(rows))
	tables := make([]series, len(rows))
	for i, row := range rows {
		samples[i] = gather(logRatios(row.Setting, row.Base), row.Instances)
		tables[i] = samples[i].medians()
	}
	block := 1
	if p, correlation := serial(tables); p <= serialLevel {
		block = max(2, blockOf(correlation))
	}
	judged := make([]Judged, len(rows))
	for i, row := range rows {
		judged[i] = row.compare(samples[i], block)
	}
	adjust(judged, func(i int) bool { return rows[i].Disturbed }, func(i int) bool { return rows[i].controlled() })
	return judged
}

// compare does all that concerns a row alone.
func (row Row) compare(s sample, block int) Judged {
	j := Judged{P: 1, Adjusted: 1, N: s.values(), Instances: len(s), Block: block}
	if j.N == 0 {
		return j
	}
	j.Spread = s.components()
	j.Modes = row.modes()
	s = s.blocks(block)
	r := resample(s.units())
	low, high := r.interval()
	j.Ratio, j.Low, j.High = ratio(r.median), ratio(low), ratio(high)
	if j.decidable() {
		j.P = r.p()
		if j.Modes {
			j.P = max(j.P, ofMeans(s.medians()))
		}
	}
	j.ControlLow, j.ControlHigh = Band(row.Controls, row.Instances)
	return j
}

// modes looks at the values themselves, without what their rounds share.
func (row Row) modes() bool {
	var setting, base []float64
	for i := range min(len(row.Setting), len(row.Base)) {
		if a, b := math.Log(row.Setting[i]), math.Log(row.Base[i]); finite(a) && finite(b) {
			setting, base = append(setting, a), append(base, b)
		}
	}
	return modes(setting) || modes(base)
}

// Band covers the 95 % intervals of the ratios of what is the same to the same; 0: there are none.
func Band(controls []Pairing, instances []int) (low, high float64) {
	for _, c := range controls {
		s := gather(logRatios(c.Again, c.Once), instances)
		if s.values() == 0 {
			continue
		}
		l, h := resample(s.units()).interval()
		if low == 0 {
			low, high = ratio(l), ratio(h)
		}
		low, high = min(low, ratio(l)), max(high, ratio(h))
	}
	return low, high
}

// controlled says whether the A/A band, if there is one, has instances enough to be relied on.
func (row Row) controlled() bool {
	return !slices.ContainsFunc(row.Controls, func(c Pairing) bool {
		return len(gather(logRatios(c.Again, c.Once), row.Instances)) < Enough
	})
}

// decidable says whether there are instances enough, or blocks of them.
func (j Judged) decidable() bool { return j.Instances/max(1, j.Block) >= Enough }

func (j Judged) verdict(controlled bool) Verdict {
	outside := j.High < 1-Margin || j.Low > 1+Margin
	beyond := j.ControlLow == 0 || j.High < j.ControlLow || j.Low > j.ControlHigh
	switch {
	case !j.decidable():
		return Undecided
	case j.Low >= 1-Margin && j.High <= 1+Margin:
		return Same
	case outside && beyond && controlled && j.Adjusted < level:
		return Differs
	}
	return Undecided
}

// Rounds says how many rounds an instance is worth where making one costs as much as so many rounds (Kalibera and Jones, section 7): the square
// root of what each costs, and of the variance that each adds, for the row in the middle; 0: the rows do not tell.
func Rounds(rows []Components, cost float64) float64 {
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

// logRatios gives the logarithms of the ratios within rounds; NaN where there is none.
func logRatios(above, below []float64) []float64 {
	logs := make([]float64, min(len(above), len(below)))
	for i := range logs {
		logs[i] = math.NaN()
		if a, b := above[i], below[i]; a > 0 && b > 0 && finite(a) && finite(b) {
			logs[i] = math.Log(a) - math.Log(b)
		}
	}
	return logs
}

func ratio(log float64) float64 { return bounded(math.Exp(log)) }
