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

// A Comparison sets two bundles side by side.
type Comparison struct {
	Before bundle.Head      `json:"before"`
	After  bundle.Head      `json:"after"`
	Rows   []*Compared      `json:"rows"`
	Only   []string         `json:"only,omitempty"` // what one of them has no value for
	Facts  []FactDifference `json:"facts,omitempty"`
	Notes  []string         `json:"notes,omitempty"` // why to be careful
}

// A Compared is one figure in one setting in both bundles. Rounds of two runs are not paired, so intervals are those of stats.JudgePairs.
type Compared struct {
	Test    string        `json:"test"`
	Figure  string        `json:"figure"`
	Setting string        `json:"setting"`
	Unit    string        `json:"unit"`
	Better  test.Better   `json:"better"`
	Before  stats.Summary `json:"before"`
	After   stats.Summary `json:"after"`
	Value   *Ratio        `json:"value,omitempty"` // after to before
	// Cost is how the ratio to bare changed: what the machine gained or lost as a whole is not in it. It is nil for bare.
	Cost       *Ratio          `json:"cost,omitempty"`
	CostBefore quantity.Number `json:"cost_before"` // the ratio to bare
	CostAfter  quantity.Number `json:"cost_after"`
}

// A comparing is a Comparison on its way.
type comparing struct {
	*Comparison
	before, after *Report
	values, costs sheet[stats.Pair]
}

// Compare compares what two reports both have. It is pure.
func Compare(before, after *Report) *Comparison {
	c := &comparing{before: before, after: after, values: sheet[stats.Pair]{judge: stats.JudgePairs}, costs: sheet[stats.Pair]{judge: stats.JudgePairs},
		Comparison: &Comparison{Before: before.Bundle, After: after.Bundle, Facts: factDifferences(before.Facts, after.Facts), Notes: careful(before, after)}}
	for t, f := range before.figures() {
		other := after.figure(t.Name, f.Name)
		for _, x := range f.Cells {
			c.add(t.Name, f, other, x)
		}
	}
	for t, f := range after.figures() {
		other := before.figure(t.Name, f.Name)
		for _, y := range f.Cells {
			if y.Summary != nil && y.Again == "" && (other == nil || other.cell(y.Setting) == nil) {
				c.only(t.Name, f.Name, c.After.ID, y, nil)
			}
		}
	}
	c.values.fill()
	c.costs.fill()
	for _, row := range c.Rows {
		if !judged(row.Better) {
			row.Value.Verdict = ""
			if row.Cost != nil {
				row.Cost.Verdict = ""
			}
		}
	}
	return c.Comparison
}

// add adds a row if both bundles have values for it.
func (c *comparing) add(name string, f, other *Figure, x *Cell) {
	if x.Again != "" {
		return
	}
	var y *Cell
	if other != nil {
		y = other.cell(x.Setting)
	}
	switch there := y != nil && y.Summary != nil; {
	case x.Summary == nil && there:
		c.only(name, f.Name, c.After.ID, y, x)
	case x.Summary != nil && !there:
		c.only(name, f.Name, c.Before.ID, x, y)
	case there:
		c.row(name, f, other, x, y)
	}
}

// row adds the row of two cells.
func (c *comparing) row(name string, f, other *Figure, x, y *Cell) {
	row := &Compared{Test: name, Figure: f.Name, Setting: x.Setting, Unit: f.Unit, Better: f.Better, Before: *x.Summary, After: *y.Summary,
		CostBefore: quantity.None(), CostAfter: quantity.None()}
	low, high := band(f.Control, other.Control)
	pair := stats.Pair{Before: quantity.Floats(x.Values), After: quantity.Floats(y.Values), BeforeInstances: c.before.Nodes, AfterInstances: c.after.Nodes,
		ControlLow: low, ControlHigh: high, Disturbed: x.Disturbed || y.Disturbed}
	pair.Family = family(f.Better, tableFamily, len(c.values.rows))
	c.values.add(pair, &row.Value)
	if x.Setting != experiment.Bare && x.Ratio != nil && y.Ratio != nil {
		row.CostBefore, row.CostAfter = quantity.Number(x.Ratio.Value), quantity.Number(y.Ratio.Value)
		once, then := f.cell(experiment.Bare), other.cell(experiment.Bare)
		pair.Before, pair.After = ratios(x, once), ratios(y, then)
		pair.Disturbed = pair.Disturbed || once.Disturbed || then.Disturbed
		c.costs.add(pair, &row.Cost)
	}
	c.Rows = append(c.Rows, row)
}

// only notes a cell that has a value in one bundle only; the other is nil if that does not know of it at all.
func (c *comparing) only(name, figure, id string, has, lacks *Cell) {
	text := name + ", " + figure + ", " + has.Setting + ": only in " + id
	if lacks != nil && lacks.Missing != "" {
		text += " (" + firstLine(lacks.Missing) + ")"
	}
	c.Only = append(c.Only, text)
}

// ratios are those of rounds; of a round that does not have both it is no number.
func ratios(c, bare *Cell) []float64 {
	all := make([]float64, min(len(c.Values), len(bare.Values)))
	for i := range all {
		all[i] = float64(c.Values[i] / bare.Values[i])
	}
	return all
}

// band covers the A/A bands of both; zero: none is known.
func band(a, b *Band) (low, high float64) {
	for _, x := range []*Band{a, b} {
		if x == nil {
			continue
		}
		if low == 0 {
			low, high = x.Low, x.High
		}
		// What differs by less than the band of one, in either direction, is nothing.
		low, high = min(low, x.Low, 1/x.High), max(high, x.High, 1/x.Low)
	}
	return low, high
}

func (r *Report) figure(name, figure string) *Figure {
	for t, f := range r.figures() {
		if t.Name == name && f.Name == figure {
			return f
		}
	}
	return nil
}

// careful tells what makes two bundles hard to compare.
func careful(before, after *Report) (notes []string) {
	a, b := before.Bundle, after.Bundle
	if a.Digest != b.Digest {
		notes = append(notes, "The two experiments are not the same file: figures of one name may have been measured with other options.")
	}
	if a.Host != b.Host {
		notes = append(notes, "The two runs were on different hosts: "+a.Host+" and "+b.Host+".")
	}
	if a.Orrery != b.Orrery {
		notes = append(notes, "The two runs were made by different versions of Orrery: "+a.Orrery+" and "+b.Orrery+".")
	}
	for _, r := range []*Report{before, after} {
		if r.Bundle.State != bundle.Done {
			notes = append(notes, r.Bundle.ID+" is not finished: "+string(r.Bundle.State)+".")
		}
	}
	for _, r := range []*Report{before, after} {
		notes = append(notes, r.reliance()...)
	}
	for _, x := range [][2]*Report{{before, after}, {after, before}} {
		if names := labelled(x[0], x[1]); len(names) > 0 {
			notes = append(notes, "Only "+x[0].Bundle.ID+" has the suspect labels "+strings.Join(names, ", ")+".")
		}
	}
	return notes
}

// labelled are the labels that only the first has.
func labelled(first, other *Report) (names []string) {
	for _, s := range first.Suspects {
		if !slices.ContainsFunc(other.Suspects, func(x Suspect) bool { return x.Name == s.Name }) {
			names = append(names, s.Name)
		}
	}
	return names
}
