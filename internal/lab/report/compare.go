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
	Rows   []Compared       `json:"rows"`
	Only   []string         `json:"only,omitempty"` // what one of them has no value for
	Facts  []FactDifference `json:"facts,omitempty"`
	Notes  []string         `json:"notes,omitempty"` // why to be careful

	before, after []int // the instances of the rounds
}

// A Compared is one figure in one setting in both bundles. Rounds of two runs are not paired, so intervals are those of stats.JudgePairs.
type Compared struct {
	Test    string      `json:"test"`
	Figure  string      `json:"figure"`
	Setting string      `json:"setting"`
	Unit    string      `json:"unit"`
	Better  test.Better `json:"better"`
	Before  Summary     `json:"before"`
	After   Summary     `json:"after"`
	Value   *Ratio      `json:"value,omitempty"` // after to before
	// Cost is how the ratio to bare changed: what the machine gained or lost as a whole is not in it. It is nil for bare.
	Cost       *Ratio          `json:"cost,omitempty"`
	CostBefore quantity.Number `json:"cost_before"` // the ratio to bare
	CostAfter  quantity.Number `json:"cost_after"`
}

// Compare compares what two reports both have. It is pure.
func Compare(before, after *Report) *Comparison {
	c := &Comparison{Before: before.Bundle, After: after.Bundle, Facts: factDifferences(before.Facts, after.Facts), Notes: careful(before, after),
		before: before.Nodes, after: after.Nodes}
	var values, costs table
	for i := range before.Tests {
		for k := range before.Tests[i].Figures {
			f := &before.Tests[i].Figures[k]
			other := after.figure(before.Tests[i].Name, f.Name)
			for n := range f.Cells {
				c.add(before.Tests[i].Name, f, other, f.Cells[n].Setting, &values, &costs)
			}
		}
	}
	for i := range after.Tests {
		for k := range after.Tests[i].Figures {
			c.onlyAfter(before, after.Tests[i].Name, &after.Tests[i].Figures[k])
		}
	}
	for i, r := range values.judge() {
		c.Rows[i].Value = r
	}
	for i, r := range costs.judge() {
		c.Rows[i].Cost = r
	}
	return c
}

// A table collects what is judged together, by the row of the comparison that it belongs to.
type table struct {
	rows  []int
	pairs []stats.Pair
	told  []bool // without a verdict
}

func (t *table) add(row int, pair stats.Pair, told bool) {
	t.rows = append(t.rows, row)
	t.pairs = append(t.pairs, pair)
	t.told = append(t.told, told)
}

// judge gives ratios by row. Figures that are only told are judged apart from the table, so that they do not count for it.
func (t *table) judge() map[int]*Ratio {
	found := map[int]*Ratio{}
	var rows []int
	var pairs []stats.Pair
	for i, row := range t.rows {
		if t.told[i] {
			found[row] = ratio(stats.JudgePairs(t.pairs[i : i+1])[0])
			continue
		}
		rows, pairs = append(rows, row), append(pairs, t.pairs[i])
	}
	for i, j := range stats.JudgePairs(pairs) {
		if found[rows[i]] = ratio(j); found[rows[i]] != nil {
			found[rows[i]].Verdict = j.Verdict
		}
	}
	return found
}

// add adds a row if both bundles have values for it.
func (c *Comparison) add(name string, f, other *Figure, setting string, values, costs *table) {
	x := f.cell(setting)
	if x.Again != "" {
		return
	}
	var y *Cell
	if other != nil {
		y = other.cell(setting)
	}
	if x.Summary == nil || y == nil || y.Summary == nil {
		if x.Summary != nil {
			c.Only = append(c.Only, only(name, f.Name, setting, c.Before.ID, y))
		} else if y != nil && y.Summary != nil {
			c.Only = append(c.Only, only(name, f.Name, setting, c.After.ID, x))
		}
		return
	}
	row := Compared{Test: name, Figure: f.Name, Setting: setting, Unit: f.Unit, Better: f.Better, Before: *x.Summary, After: *y.Summary,
		CostBefore: quantity.None(), CostAfter: quantity.None()}
	low, high := band(f.Control, other.Control)
	pair := stats.Pair{Before: quantity.Floats(x.Values), After: quantity.Floats(y.Values), BeforeInstances: c.before, AfterInstances: c.after, ControlLow: low, ControlHigh: high,
		Disturbed: x.Disturbed || y.Disturbed}
	values.add(len(c.Rows), pair, !judged(f.Better))
	if setting != experiment.Bare && x.Ratio != nil && y.Ratio != nil {
		row.CostBefore, row.CostAfter = x.Ratio.Value, y.Ratio.Value
		once, then := f.cell(experiment.Bare), other.cell(experiment.Bare)
		pair.Before, pair.After = ratios(x, once), ratios(y, then)
		pair.Disturbed = pair.Disturbed || once.Disturbed || then.Disturbed
		costs.add(len(c.Rows), pair, !judged(f.Better))
	}
	c.Rows = append(c.Rows, row)
}

// onlyAfter tells of cells that the bundle before does not know at all.
func (c *Comparison) onlyAfter(before *Report, name string, f *Figure) {
	other := before.figure(name, f.Name)
	for _, y := range f.Cells {
		if y.Summary != nil && y.Again == "" && (other == nil || other.cell(y.Setting) == nil) {
			c.Only = append(c.Only, only(name, f.Name, y.Setting, c.After.ID, nil))
		}
	}
}

func only(name, figure, setting, id string, other *Cell) string {
	text := name + ", " + figure + ", " + setting + ": only in " + id
	if other != nil && other.Missing != "" {
		text += " (" + firstLine(other.Missing) + ")"
	}
	return text
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
			low, high = float64(x.Low), float64(x.High)
		}
		// What differs by less than the band of one, in either direction, is nothing.
		low, high = min(low, float64(x.Low), 1/float64(x.High)), max(high, float64(x.High), 1/float64(x.Low))
	}
	return low, high
}

func (r *Report) figure(name, figure string) *Figure {
	for i := range r.Tests {
		if r.Tests[i].Name != name {
			continue
		}
		for k := range r.Tests[i].Figures {
			if r.Tests[i].Figures[k].Name == figure {
				return &r.Tests[i].Figures[k]
			}
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
