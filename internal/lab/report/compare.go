package report

import (
	"slices"
	"strings"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/stats"
	"orrery/internal/lab/test"
)

// A Comparison compares one or several runs before a change with one or several after it.
type Comparison struct {
	Before  bundle.Manifest `json:"before"` // head of the first run of each side
	After   bundle.Manifest `json:"after"`
	Befores []string        `json:"before_runs"` // IDs of all runs of each side
	Afters  []string        `json:"after_runs"`
	// number of other runs of the same experiment on this host, which show how much runs differ
	// without a change
	Former int              `json:"former_runs"`
	Rows   []*Compared      `json:"rows"`
	Only   []string         `json:"only,omitempty"` // cells for which one side has no value
	Facts  []FactDifference `json:"facts,omitempty"`
	Notes  []string         `json:"notes,omitempty"` // reasons for caution
}

// A Compared is one figure in one setting before and after. Rounds of two runs are not paired, so
// the intervals are those of stats.JudgePairs.
type Compared struct {
	Test    string         `json:"test"`
	Figure  string         `json:"figure"`
	Setting string         `json:"setting"`
	Unit    string         `json:"unit"`
	Better  test.Direction `json:"better"`
	Before  stats.Summary  `json:"before"` // of the run, or of the medians of several runs
	After   stats.Summary  `json:"after"`
	Value   *Ratio         `json:"value,omitempty"` // after divided by before
	// Cost is how the ratio to bare changed. Changes of the whole machine cancel in it. It is nil
	// for bare.
	Cost       *Ratio          `json:"cost,omitempty"`
	CostBefore quantity.Number `json:"cost_before"` // ratio to bare
	CostAfter  quantity.Number `json:"cost_after"`
}

// A side is a list of runs: those before a change, those after it, or former ones.
type side []*Report

// A comparisonBuilder is a Comparison under construction.
type comparisonBuilder struct {
	*Comparison
	before, after, former side
	table                 sheet[stats.Pair] // values and costs, judged together
}

// Compare compares what the runs before and after a change have in common. Each of both lists needs
// at least one run. Former runs are other runs of the same experiment on the same host. It is pure.
func Compare(before, after, former []*Report) *Comparison {
	first, last := before[0], after[0]
	c := &comparisonBuilder{before: before, after: after, former: former,
		table: sheet[stats.Pair]{judge: stats.JudgePairs},
		Comparison: &Comparison{Before: first.Bundle, After: last.Bundle, Befores: side(before).ids(),
			Afters: side(after).ids(), Former: len(former),
			Facts: factDifferences(first.Facts, last.Facts), Notes: caveats(before, after)}}
	for t, f := range first.Tests.Rows() {
		for _, x := range f.Cells {
			c.add(t, f, x)
		}
	}
	for t, f := range last.Tests.Rows() {
		other := first.Tests.figure(t.Name, f.Name)
		for _, y := range f.Cells {
			if y.Summary != nil && y.Again == "" && (other == nil || other.cell(y.Setting) == nil) {
				c.addOneSided(t.Name, f.Name, c.After.ID, y, nil)
			}
		}
	}
	c.table.fill()
	for _, row := range c.Rows {
		if !isJudged(row.Better) {
			row.Value.Verdict = ""
			if row.Cost != nil {
				row.Cost.Verdict = ""
			}
		}
	}
	return c.Comparison
}

func (s side) ids() (all []string) {
	for _, r := range s {
		all = append(all, r.Bundle.ID)
	}
	return all
}

// A runCell is a figure in a setting of one run.
type runCell struct {
	*Report
	figure *Figure
	cell   *Cell
}

// cells returns the figure's cells in the runs that have a value.
func (s side) cells(name, figure, setting string) (all []runCell) {
	for _, r := range s {
		if f := r.Tests.figure(name, figure); f != nil {
			if c := f.cell(setting); c != nil && c.Summary != nil {
				all = append(all, runCell{r, f, c})
			}
		}
	}
	return all
}

// add adds a row if both sides have values for it.
func (c *comparisonBuilder) add(t *Test, f *Figure, x *Cell) {
	if x.Again != "" {
		return
	}
	before, after := c.before.cells(t.Name, f.Name, x.Setting), c.after.cells(t.Name, f.Name, x.Setting)
	var y *Cell
	if other := c.after[0].Tests.figure(t.Name, f.Name); other != nil {
		y = other.cell(x.Setting)
	}
	switch {
	case len(before) == 0 && len(after) > 0:
		c.addOneSided(t.Name, f.Name, c.After.ID, after[0].cell, x)
	case len(before) > 0 && len(after) == 0:
		c.addOneSided(t.Name, f.Name, c.Before.ID, before[0].cell, y)
	case len(before) > 0:
		c.row(t, f, x.Setting, before, after)
	}
}

// row adds the row of a figure in a setting.
func (c *comparisonBuilder) row(t *Test, f *Figure, setting string, before, after []runCell) {
	row := &Compared{Test: t.Name, Figure: f.Name, Setting: setting, Unit: f.Unit, Better: f.Better,
		Before: summaryOf(before), After: summaryOf(after),
		CostBefore: quantity.None(), CostAfter: quantity.None()}
	former := c.former.cells(t.Name, f.Name, setting)
	pair := stats.Pair{Kind: t.Kind, Figure: t.Name + "\n" + f.Name,
		Family: family(f.Better, tableFamily, len(c.table.rows)),
		Before: runsOf(before, runCell.values), After: runsOf(after, runCell.values), Former: runsOf(former, runCell.values)}
	for _, s := range slices.Concat(before, after) {
		pair.ControlLow, pair.ControlHigh = widenBand(pair.ControlLow, pair.ControlHigh, s.figure.Control)
		pair.Disturbed = pair.Disturbed || s.cell.Disturbed
	}
	c.table.add(pair, &row.Value)
	if costly := func(s runCell) bool { return s.cell.Ratio != nil }; setting != experiment.Bare &&
		slices.ContainsFunc(before, costly) && slices.ContainsFunc(after, costly) {
		row.CostBefore, row.CostAfter = costOf(before), costOf(after)
		pair.Before, pair.After, pair.Former = runsOf(before, runCell.ratios), runsOf(after, runCell.ratios),
			runsOf(former, runCell.ratios)
		for _, s := range slices.Concat(before, after) {
			pair.Disturbed = pair.Disturbed || s.figure.cell(experiment.Bare).Disturbed
		}
		if pair.Kind += ", cost"; !isJudged(f.Better) { // a kind of its own: slow changes of the machine cancel
			pair.Family++
		}
		c.table.add(pair, &row.Cost)
	}
	c.Rows = append(c.Rows, row)
}

// summaryOf returns the summary of one run, or of the medians of several runs.
func summaryOf(shots []runCell) stats.Summary {
	if len(shots) == 1 {
		return *shots[0].cell.Summary
	}
	var medians []float64
	for _, s := range shots {
		medians = append(medians, s.cell.Summary.Median)
	}
	return stats.Summarize(medians, nil, 1)
}

// costOf returns the median of the runs' ratios to bare.
func costOf(shots []runCell) quantity.Number {
	var all []float64
	for _, s := range shots {
		if s.cell.Ratio != nil {
			all = append(all, s.cell.Ratio.Value)
		}
	}
	return quantity.Number(stats.Summarize(all, nil, 1).Median)
}

func runsOf(shots []runCell, values func(runCell) []float64) (all []stats.Run) {
	for _, s := range shots {
		all = append(all, stats.Run{Values: values(s), Instances: s.Nodes})
	}
	return all
}

func (s runCell) values() []float64 { return quantity.Floats(s.cell.Values) }

func (s runCell) ratios() []float64 {
	if bare := s.figure.cell(experiment.Bare); bare != nil {
		return ratios(s.cell.Values, s.figure.baseValues(bare))
	}
	return nil
}

// addOneSided records a cell that has a value on one side only. lacks is the other side's cell, or nil.
func (c *comparisonBuilder) addOneSided(name, figure, id string, present, lacks *Cell) {
	text := name + ", " + figure + ", " + present.Setting + ": only in " + id
	if lacks != nil && lacks.Missing != "" {
		text += " (" + firstLine(lacks.Missing) + ")"
	}
	c.Only = append(c.Only, text)
}

// ratios returns the ratios by round, or NaN for a round that lacks one of the values.
func ratios(values []quantity.Number, bare []float64) []float64 {
	all := make([]float64, min(len(values), len(bare)))
	for i := range all {
		all[i] = float64(values[i]) / bare[i]
	}
	return all
}

// widenBand extends a band to cover the A/A band of another run. A low of 0 means that there is no
// band yet.
func widenBand(low, high float64, x *Band) (float64, float64) {
	if x == nil {
		return low, high
	}
	if low == 0 {
		low, high = x.Low, x.High
	}
	// A difference within either band, in either direction, is not significant.
	return min(low, x.Low, 1/x.High), max(high, x.High, 1/x.Low)
}

func (tests Table) figure(name, figure string) *Figure {
	for t, f := range tests.Rows() {
		if t.Name == name && f.Name == figure {
			return f
		}
	}
	return nil
}

// caveats returns the reasons why the runs are hard to compare.
func caveats(before, after side) (notes []string) {
	all := slices.Concat(before, after)
	a := all[0].Bundle
	other := func(differs func(b bundle.Manifest) bool) (bundle.Manifest, bool) {
		i := slices.IndexFunc(all, func(r *Report) bool { return differs(r.Bundle) })
		if i < 0 {
			return a, false
		}
		return all[i].Bundle, true
	}
	if _, ok := other(func(b bundle.Manifest) bool { return a.Digest != b.Digest }); ok {
		notes = append(notes, "The experiment files differ, so figures of the same name may have been measured with different options.")
	}
	if b, ok := other(func(b bundle.Manifest) bool { return a.Host != b.Host }); ok {
		notes = append(notes, "The runs were on different hosts: "+a.Host+" and "+b.Host+".")
	}
	if b, ok := other(func(b bundle.Manifest) bool { return a.Orrery != b.Orrery }); ok {
		notes = append(notes, "The runs used different versions of Orrery: "+a.Orrery+" and "+b.Orrery+".")
	}
	for _, r := range all {
		if r.Bundle.State != bundle.Done {
			notes = append(notes, r.Bundle.ID+" is not finished: "+string(r.Bundle.State)+".")
		}
	}
	for _, r := range all {
		notes = append(notes, r.reliabilityWarnings()...)
	}
	for _, x := range [][2]*Report{{before[0], after[0]}, {after[0], before[0]}} {
		if names := extraLabels(x[0], x[1]); len(names) > 0 {
			notes = append(notes, "Only "+x[0].Bundle.ID+" has the suspect labels "+strings.Join(names, ", ")+".")
		}
	}
	return notes
}

// extraLabels returns the labels that only the first report has.
func extraLabels(first, other *Report) (names []string) {
	for _, s := range first.Suspects {
		if !slices.ContainsFunc(other.Suspects, func(x Suspect) bool { return x.Name == s.Name }) {
			names = append(names, s.Name)
		}
	}
	return names
}
