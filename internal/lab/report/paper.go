package report

import (
	"fmt"
	"slices"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/quantity"
)

// maxPaperFigures is the maximum number of figures in a table in the style of the papers.
const maxPaperFigures = 5

// PaperTable returns the table with a row for each setting and, for each figure, its value and its
// percentage of bare. This is the form of KAT-7 table 1 (rate, CPU %, relative %, CPU per Gb/s) and
// of the tables of INFN (loss from bare). It returns nil if the test has too many figures.
func (t *Test) PaperTable() *grid {
	if len(t.Figures) == 0 || len(t.Figures) > maxPaperFigures {
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

// settings returns the settings that have a value or a failure in the test, in order.
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

// absent reports whether the setting was not available. That is shown once, before the tables.
func (c *Cell) absent() bool { return c.Summary == nil && c.Failed == 0 && c.Missing != "" }

// SingleCopies returns the results of single copies of a test with several copies, or nil if there are
// none.
func (t *Test) SingleCopies() *grid {
	g := &grid{Head: []string{"single copy", "median", "minimum to maximum", "spread, %", "values"}}
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

// DeathTable returns a table with a row for each setting and a column for each place where packets
// were lost, or nil if none were.
func (t *Test) DeathTable() *grid {
	if len(t.Deaths) == 0 {
		return nil
	}
	g := &grid{Head: []string{"setting"}}
	for _, w := range dropPlaces() {
		if slices.ContainsFunc(t.Deaths, func(d Drops) bool { return d.at(w[1]) > 0 }) {
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
