package report

import (
	"fmt"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/quantity"
)

// paper reports whether a test has so few figures that its table can be as in the papers: a row for each setting.
func (t *Test) paper() bool { return len(t.Figures) > 0 && len(t.Figures) <= 5 }

// asPaper is the table with a row for each setting, and for each figure its value and what it is of bare's, as in KAT-7 table 1 (rate, CPU %,
// relative %, CPU per Gb/s) and in the tables of INFN (loss from bare).
func (t *Test) asPaper() *grid {
	g := &grid{head: []string{"setting"}}
	scales := make([]quantity.Scale, len(t.Figures))
	for i := range t.Figures {
		scales[i] = t.Figures[i].scale()
		g.head = append(g.head, unitHead(t.Figures[i].Name, scales[i]), "% of bare")
	}
	for _, name := range t.settings() {
		row := []string{name}
		for i := range t.Figures {
			value, relative := "–", "–"
			if c := t.Figures[i].cell(name); c != nil && c.Summary != nil {
				value = scales[i].Number(c.Summary.Median)
				switch {
				case name == experiment.Bare:
					relative = "100"
				case c.Ratio != nil && c.Ratio.Value.Is():
					relative = quantity.Percent(float64(c.Ratio.Value))
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

// singles is what single copies gave of those that ran at once; nil if there is but one.
func (t *Test) singles() *grid {
	g := &grid{head: []string{"a single copy", "median", "least to most", "spread, %", "values"}}
	for k := range t.Figures {
		f := &t.Figures[k]
		var medians []float64
		for _, c := range f.Cells {
			if c.Single != nil {
				medians = append(medians, float64(c.Single.Median))
			}
		}
		s := quantity.ScaleOfFigure(f.Name, f.Unit, medians)
		for _, c := range f.Cells {
			if c.Single != nil {
				g.add(f.Name+", "+c.Setting, s.Value(c.Single.Median), s.Number(c.Single.Least)+" to "+s.Number(c.Single.Most), quantity.Percent(float64(c.Single.Spread)),
					fmt.Sprint(c.Single.N))
			}
		}
	}
	if len(g.rows) == 0 {
		return nil
	}
	return g
}
