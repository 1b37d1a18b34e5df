package report

import (
	"fmt"
	"slices"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/quantity"
)

// maxPaper is how many figures a test may have, for its table to be as in the papers.
const maxPaper = 5

// Paper is the table with a row for each setting, and for each figure its value and what it is of
// bare's, as in KAT-7 table 1 (rate, CPU %, relative %, CPU per Gb/s) and in the tables of INFN
// (loss from bare); nil for a test of more figures than fit.
func (t *Test) Paper() *grid {
	if len(t.Figures) == 0 || len(t.Figures) > maxPaper {
		return nil
	}
	g := &grid{Head: []string{"setting"}}
	for _, f := range t.Figures {
		g.Head = append(g.Head, unitHead(f.Name, f.Scale()), "% of bare")
	}
	for _, name := range t.settings() {
		row := []string{name}
		for _, f := range t.Figures {
			value, relative := "–", "–"
			if c := f.cell(name); c != nil && c.Summary != nil {
				value = f.Scale().Number(c.Summary.Median)
				switch {
				case name == experiment.Bare:
					relative = "100"
				case f.Effect(c) == Disturbed:
					relative = signs[Disturbed]
				case c.Ratio != nil:
					relative = quantity.Percent(c.Ratio.Value)
				}
			}
			row = append(row, value, relative)
		}
		g.add(row...)
	}
	return g
}

// settings are those that have a value or a failure in the test, in order.
func (t *Test) settings() (names []string) {
	seen := map[string]bool{}
	for _, f := range t.Figures {
		for _, c := range f.Cells {
			if !seen[c.Setting] && !c.absent() {
				seen[c.Setting] = true
				names = append(names, c.Setting)
			}
		}
	}
	return names
}

// absent reports whether the setting could not be had: that is told once, before the tables.
func (c *Cell) absent() bool { return c.Summary == nil && c.Failed == 0 && c.Missing != "" }

// Singles is what single copies gave of those that ran at once; nil if there is but one.
func (t *Test) Singles() *grid {
	g := &grid{Head: []string{"a single copy", "median", "least to most", "spread, %", "values"}}
	for _, f := range t.Figures {
		var medians []float64
		for _, c := range f.Cells {
			if c.Single != nil {
				medians = append(medians, c.Single.Median)
			}
		}
		s := quantity.ScaleOfFigure(f.Name, f.Unit, medians)
		for _, c := range f.Cells {
			if one := c.Single; one != nil {
				g.add(f.Name+", "+c.Setting, s.Value(one.Median), s.Number(one.Least)+" to "+s.Number(one.Most),
					quantity.Percent(one.Spread), fmt.Sprint(one.N))
			}
		}
	}
	if len(g.Rows) == 0 {
		return nil
	}
	return g
}

// DeathTable has a row for each setting and a column for each place at which packets died; nil if none did.
func (t *Test) DeathTable() *grid {
	if len(t.Deaths) == 0 {
		return nil
	}
	g := &grid{Head: []string{"setting"}}
	for _, w := range route() {
		if slices.ContainsFunc(t.Deaths, func(d Deaths) bool { return d.at(w[1]) > 0 }) {
			g.Head = append(g.Head, w[1])
		}
	}
	for _, d := range t.Deaths {
		row := []string{d.Setting}
		for _, place := range g.Head[1:] {
			cell := "0"
			if n := d.at(place); n > 0 {
				cell = d.share(n)
			}
			row = append(row, cell)
		}
		g.add(row...)
	}
	return g
}
