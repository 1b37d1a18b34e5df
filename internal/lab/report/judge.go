package report

import (
	"cmp"
	"fmt"
	"math"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/stats"
	"orrery/internal/lab/suspect"
	"orrery/internal/lab/test"
)

// A sheet collects rows that are judged together, and where to store the ratio of each.
type sheet[R any] struct {
	judge func([]R) []stats.Result
	rows  []R
	into  []**Ratio
}

// add adds a row.
func (s *sheet[R]) add(row R, into **Ratio) {
	s.rows, s.into = append(s.rows, row), append(s.into, into)
}

// fill judges all rows and stores their ratios and verdicts.
func (s *sheet[R]) fill() {
	for i, j := range s.judge(s.rows) {
		*s.into[i] = newRatio(j)
	}
}

// Families of rows, within which p is adjusted. Controls describe the table and are not part of its
// family. Each figure that is not judged is a family of its own, so that it does not make
// differences of other figures harder to show.
const (
	tableFamily = iota
	controlFamily
	firstUnjudgedFamily
)

// family returns the family of the n-th row.
func family(better test.Direction, otherwise, n int) int {
	if !isJudged(better) {
		return firstUnjudgedFamily + n
	}
	return otherwise
}

// judge computes all ratios of the report.
func judge(r *Report) {
	table := sheet[stats.Comparison]{judge: stats.Judge}
	for t, f := range r.Tests.Rows() {
		r.addRows(t, f, &table)
	}
	table.fill()
	for t, f := range r.Tests.Rows() {
		block := 1
		for _, c := range f.Cells {
			if c.Ratio == nil {
				continue
			}
			block = max(block, c.Ratio.Block)
			if c.Again != "" && isJudged(f.Better) && (c.Ratio.Verdict == stats.Differs || c.Ratio.Verdict == stats.Fails) {
				r.Controls = append(r.Controls, fmt.Sprintf("%s, %s: %s against %s %s (%s)", t.Name, f.Name, c.Setting, c.Again,
					quantity.Change(c.Ratio.Value),
					c.Ratio.between()))
			}
			if c.Again != "" || !isJudged(f.Better) {
				c.Ratio.Verdict = ""
			}
		}
		if low, high, ranged := stats.Band(f.pairings(), r.Nodes, block); low > 0 {
			f.Control = &Band{Low: low, High: high, Range: ranged}
		}
	}
}

// addRows adds the rows of a figure to the sheet.
func (r *Report) addRows(t *Test, f *Figure, table *sheet[stats.Comparison]) {
	pairs := f.pairings()
	for _, cell := range f.Cells {
		once := f.baselineCell(cell)
		if once == nil || once.Summary == nil || cell == once || cell.Summary == nil {
			continue
		}
		row := stats.Comparison{Kind: t.Kind, Figure: t.Name + "\n" + f.Name, Worst: worstValue(f.Better),
			Setting: cell.judgedValues(f.Better), Baseline: f.baseValues(once),
			Controls: pairs, Instances: r.Nodes, Disturbed: cell.Disturbed || once.Disturbed,
			Alike: equallyLoaded(cell, once, r.Bundle.Disturbed), Family: family(f.Better, tableFamily, len(table.rows))}
		if cell.Again != "" {
			row.Baseline, row.Controls, row.Family = once.judgedValues(f.Better), nil,
				family(f.Better, controlFamily, len(table.rows))
		}
		table.add(row, &cell.Ratio)
	}
}

// baselineCell returns the cell with which c is compared: that of bare, or of the setting that c repeats.
func (f *Figure) baselineCell(c *Cell) *Cell { return f.cell(cmp.Or(c.Again, experiment.Bare)) }

// pairings returns the controls of a figure. A control without values is included: nothing was
// shown to exceed it.
func (f *Figure) pairings() (all []stats.AAControl) {
	for _, cell := range f.Cells {
		if once := f.baselineCell(cell); cell.Again != "" && once != nil {
			all = append(all, stats.AAControl{A: quantity.Floats(cell.Values), B: quantity.Floats(once.Values)})
		}
	}
	return all
}

// worstValue returns the value that stands for a round in which a test failed.
func worstValue(b test.Direction) float64 {
	if b == test.Less {
		return math.Inf(1)
	}
	return 0
}

// judgedValues returns the values of a cell by round for judging. A failed round has the worst possible
// value: a test that fails in every second round has a cost.
func (c *Cell) judgedValues(b test.Direction) []float64 {
	values := quantity.Floats(c.Values)
	for i := range values {
		if isJudged(b) && (c.failedIn(i) || values[i] < 0) {
			values[i] = worstValue(b)
		}
	}
	return values
}

// baseValues returns the values with which a cell is compared. Bare is measured twice in each round, and
// the base is the geometric mean of both, because ratios are compared. To find 10 % with only one
// of both would take a fifth more rounds.
func (f *Figure) baseValues(once *Cell) []float64 {
	values := once.judgedValues(f.Better)
	twin := f.cell(experiment.Control)
	if once.Setting != experiment.Bare || twin == nil ||
		!stats.IsLightTailed(quantity.Floats(twin.Values), quantity.Floats(once.Values)) {
		return values
	}
	for i, other := range twin.judgedValues(f.Better) {
		switch usable, too := isPositiveFinite(values[i]), isPositiveFinite(other); {
		case usable && too:
			values[i] = math.Sqrt(values[i]) * math.Sqrt(other)
		case too:
			values[i] = other
		}
	}
	return values
}

func isPositiveFinite(v float64) bool { return v > 0 && !math.IsInf(v, 1) }

// failedIn reports whether a trial failed in a round. Rounds are counted from 0.
func (c *Cell) failedIn(round int) bool { return round < len(c.fails) && c.fails[round] }

// disturbed reports whether other processes used the host in too many rounds of a cell. most is the
// allowed share of rounds, or 0 for the default.
func disturbed(labels []Mark, most float64) bool {
	return loadedShare(labels) > cmp.Or(most, experiment.DefaultDisturbed)
}

// equallyLoaded reports whether the host was used by others in about as many rounds of a as of b. most is
// as in disturbed.
func equallyLoaded(a, b *Cell, most float64) bool {
	return a.Disturbed && b.Disturbed &&
		math.Abs(loadedShare(a.Labels)-loadedShare(b.Labels)) <= cmp.Or(most, experiment.DefaultDisturbed)
}

// loadedShare returns the share of rounds in which other processes used the host.
func loadedShare(labels []Mark) (share float64) {
	for _, m := range labels {
		if (m.Name == suspect.Load || m.Name == suspect.Steal) && m.Of > 0 {
			share = max(share, float64(m.Count)/float64(m.Of))
		}
	}
	return share
}

// newRatio returns nil if there is no round with both values.
func newRatio(j stats.Result) *Ratio {
	if j.N == 0 {
		return nil
	}
	r := &Ratio{N: j.N, Instances: j.Instances, Value: j.Ratio, Low: j.Low, High: j.High, Range: j.Range, P: j.P,
		Adjusted: j.Adjusted,
		Between:  quantity.None(), Within: quantity.None(), Modes: j.Bimodal, Verdict: j.Verdict, suspected: j.Suspected}
	if n := j.Failures; n.Any() {
		r.Failures = &Failures{n.Setting, n.Of, n.Base, n.BaseOf, n.Adjusted}
	}
	if j.Spread.Known {
		r.Between, r.Within = quantity.Number(j.Spread.Instances), quantity.Number(j.Spread.Rounds)
	}
	if j.BlockLength > 1 {
		r.Block = j.BlockLength
	}
	return r
}
