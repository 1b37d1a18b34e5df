// Package stats decides how far to believe a table of measurements. It is pure: the same values
// give the same answer.
//
// The figure of a row is the median over instances of the ratio of a setting to the bare host in
// the same round. A ratio of medians would keep what the rounds share, such as a host that gets
// slower in the night or a neighbour that wakes up; in the ratio within a round it cancels. With
// noise of 2 % and a drift of 30 % over ten rounds, the ratio of medians is off by half as much
// again (TestDrift: 1.75 % against 1.07 %). All is done with logarithms, so that a ratio and its
// inverse, a rate and a time, are judged alike.
package stats

import (
	"math"
	"slices"
)

// Margin is the difference that matters: a ratio within 1 ± Margin is the same for whoever runs the host.
const Margin = 0.05

// Enough is the number of instances, with a value of the setting and of bare, below which nothing is decided.
const Enough = 5

// A Row holds the values of one figure in one setting, by kept round: same order and length. A
// value that is NaN or negative has no ratio, and its round does not count for the row.
type Row struct {
	Kind, Figure string // of the test, and the figure itself: what has slow moods is looked for by them
	Family       int    // rows of one family share the correction of p for their number
	Setting      []float64
	Base         []float64 // bare
	Worst        float64   // the value that stands for a round that failed: 0 of a rate, infinity of a time
	Controls     []Pairing // the same against the same, the A/A controls; none: there is nothing to be beyond
	Instances    []int     // of the nodes, by round; none: each round had one of its own
	Disturbed    bool      // the host was, in too many of the rounds
	Alike        bool      // and it was for bare as for the setting, so that the A/A controls show what came of it
}

// A Pairing is two settings that are the same, by kept round.
type Pairing struct{ Again, Once []float64 }

// Judged is what a row comes to. Ratios are setting to base. Without Enough instances P and
// Adjusted are 1; without any round, ratios are 0.
type Judged struct {
	N           int // rounds that count
	Instances   int // in which they were done
	Ratio       float64
	Low, High   float64    // 95 % interval of Ratio
	Range       bool       // Low and High are no such interval: too few values, and these are the least and the greatest
	P           float64    // how probable such a ratio is if the true one is 1
	Adjusted    float64    // P, corrected by Holm over the family
	ControlLow  float64    // the A/A band: what the 95 % intervals of the controls cover
	ControlHigh float64    //
	Spread      Components // of the ratio
	Modes       bool       // the values of the setting, or of bare, lie in two heaps
	Block       int        // instances in a row that count for one, since neighbours are too much alike; 1: they are not
	Suspected   bool       // neighbours may be too much alike: more rounds will tell
	Failures    Failures
	Verdict     Verdict
	controlled  bool // the A/A band can be relied on
}

// A Verdict is what may be said of a row.
type Verdict string

// The verdicts.
const (
	Same Verdict = "same" // the interval lies wholly within 1 ± Margin
	// it lies wholly outside, and wholly beyond the A/A band, and Adjusted is below 0.05
	Differs Verdict = "differs"
	// as Differs, but the interval reaches into 1 ± Margin: sure, but perhaps too small to matter
	Slight       Verdict = "differs slightly"
	Fails        Verdict = "fails" // the setting fails in more instances than bare does, and not by chance
	Undecided    Verdict = "undecided"
	Unmeasurable Verdict = "not measurable now" // the host was disturbed, and its A/A band is too wide
)

// Judge judges a whole table: Holm's correction needs all of its rows, and so does the search for
// autocorrelation.
func Judge(rows []Row) []Judged {
	blocks := blocksOf(rows)
	judged := make([]Judged, len(rows))
	bands := map[[2]string]band{} // rows of one figure have the same
	for i, row := range rows {
		of := [2]string{row.Kind, row.Figure}
		b, known := bands[of]
		if !known || row.Figure == "" {
			b = bandOf(row.Controls, row.Instances, blocks[i].Block)
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
	blame(rows, judged)
	for i, row := range rows {
		j := &judged[i]
		if j.Verdict = j.verdict(); row.Disturbed && (!row.Alike || !j.calm()) {
			j.Verdict = Unmeasurable
		}
	}
	return judged
}

// blocksOf looks for slow moods in the ratios of all rows, and in those of their controls.
func blocksOf(rows []Row) []Serial {
	all := make([]Series, len(rows))
	seen := map[[2]string]bool{}
	for i, row := range rows {
		all[i] = Series{row.Kind, row.Figure, logRatios(row.Setting, row.Base), row.Instances}
	}
	for _, row := range rows {
		if of := [2]string{row.Kind, row.Figure}; row.Figure == "" || !seen[of] {
			seen[of] = true
			for _, c := range row.Controls {
				all = append(all, Series{row.Kind, row.Figure, logRatios(c.Again, c.Once), row.Instances})
			}
		}
	}
	return Blocks(all)[:len(rows)]
}

// compare does all that concerns a row alone.
func (row Row) compare(serial Serial, controls band) Judged {
	s := gather(logRatios(row.Setting, row.Base), row.Instances)
	j := Judged{P: 1, Adjusted: 1, N: s.values(), Instances: len(s), Block: serial.Block, Suspected: serial.Suspected}
	j.ControlLow, j.ControlHigh, j.controlled = controls.low, controls.high, controls.controlled
	j.Failures = row.failures(serial.Block)
	if j.N == 0 {
		return j
	}
	j.Spread = s.components()
	j.Modes = row.modes()
	s = s.blocks(serial.Block)
	units := s.units()
	if j.Range = !j.decidable(); j.Range {
		j.Ratio, j.Low, j.High = ratio(median(units)), ratio(units[0]), ratio(units[len(units)-1])
		return j
	}
	r := resample(units)
	low, high := r.interval()
	j.Ratio, j.Low, j.High = ratio(r.median), ratio(low), ratio(high)
	switch {
	case math.IsInf(r.median, 0): // its failures tell
	case math.IsInf(units[0], 0) || math.IsInf(units[len(units)-1], 0):
		j.P = resample(tamed(units)).p()
	default:
		j.P = r.p()
	}
	if j.Modes {
		j.P = max(j.P, ofMeans(s.finite().medians()))
	}
	return j
}

// interval returns the median of a sample, which has a value, and its 95 % interval; with fewer
// than Enough of what is resampled, the range.
func (s sample) interval() (middle, low, high float64, ranged bool) {
	units := s.units()
	if len(s) < Enough {
		return median(units), units[0], units[len(units)-1], true
	}
	r := resample(units)
	low, high = r.interval()
	return r.median, low, high, false
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

// A band is the A/A band of a figure. It is controlled if all controls have instances enough to be relied on.
type band struct {
	low, high  float64
	controlled bool
}

// bandOf covers the 95 % intervals of the ratios of what is the same to the same, or the ranges if
// there are too few instances; 0: there are none.
func bandOf(controls []Pairing, instances []int, block int) band {
	b := band{controlled: true}
	for _, c := range controls {
		s := gather(logRatios(c.Again, c.Once), instances)
		b.controlled = b.controlled && len(s)/max(1, block) >= Enough
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

// Band covers the 95 % intervals of the ratios of what is the same to the same; 0: there are none.
// With too few instances for an interval it covers the ranges.
func Band(controls []Pairing, instances []int, block int) (low, high float64, ranged bool) {
	b := bandOf(controls, instances, block)
	return b.low, b.high, !b.controlled
}

// decidable says whether there are instances enough, or blocks of them.
func (j Judged) decidable() bool { return j.Instances/max(1, j.Block) >= Enough }

// calm says whether a row can be judged though others used the host: what is the same was measured
// as the same all along.
func (j Judged) calm() bool {
	return j.controlled && j.ControlLow >= 1-Margin && j.ControlHigh <= 1+Margin
}

func (j Judged) verdict() Verdict {
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

// Rounds says how many rounds an instance is worth where making one costs as much as so many rounds
// (Kalibera and Jones, section 7): the square root of what each costs, and of the variance that
// each adds, for the row in the middle; 0: the rows do not tell.
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

// logRatios returns the logarithms of the ratios within rounds: infinite where one of the two is
// the worst or the best that there can be, and NaN where there is none, or both are.
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
