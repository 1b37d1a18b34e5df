package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/draw"
	"orrery/internal/lab/report/quantity"
)

// minCopiesForChart is how many different numbers of copies a plot needs. A table is enough for two.
const minCopiesForChart = 3

// A copiesChart shows a figure of a test by the number of copies that ran at once, with a chart for
// each setting, like Rx-OSD's charts of throughput by clients.
type copiesChart struct {
	Name   string // names of test and figure
	Charts []chart
}

// ByCopies returns charts of the tests that ran with several numbers of copies.
func (tests Table) ByCopies() (all []copiesChart) {
	var names []string
	of := map[string][]*Test{}
	for _, t := range tests {
		name := strings.TrimSuffix(t.Name, fmt.Sprintf(" x%d", t.Copies))
		if of[name] == nil {
			names = append(names, name)
		}
		of[name] = append(of[name], t)
	}
	for _, name := range names {
		group := of[name]
		if len(group) < minCopiesForChart {
			continue
		}
		slices.SortFunc(group, func(a, b *Test) int { return cmp.Compare(a.Copies, b.Copies) })
		for _, f := range group[0].Figures {
			if c := newCopiesChart(name, f.Name, group); len(c.Charts) > 0 {
				all = append(all, c)
			}
		}
	}
	return all
}

// newCopiesChart returns the chart of one figure.
func newCopiesChart(name, figure string, tests []*Test) copiesChart {
	var order []string
	lines := map[string][]draw.Point{}
	unit, plot := "", draw.XY{Left: float64(tests[0].Copies), Right: float64(tests[0].Copies)}
	for _, t := range tests {
		plot.Marks = append(plot.Marks, draw.Mark{X: float64(t.Copies), Text: strconv.Itoa(t.Copies)})
		for _, f := range t.Figures {
			if f.Name != figure {
				continue
			}
			unit = f.Unit
			for _, c := range f.Cells {
				if c.Summary == nil || c.Again != "" || !quantity.Number(c.Summary.Median).IsFinite() {
					continue
				}
				if lines[c.Setting] == nil {
					order = append(order, c.Setting)
				}
				lines[c.Setting] = append(lines[c.Setting],
					draw.Point{X: float64(t.Copies), Y: c.Summary.Median, Low: c.Summary.Low, High: c.Summary.High})
			}
		}
	}
	all := copiesChart{Name: name + ", " + figure}
	var drawn []draw.Line
	for _, setting := range order {
		drawn = append(drawn, draw.Line{Name: setting, Spots: lines[setting]})
	}
	plot.Marks = draw.ThinMarks(plot.Marks)
	all.Charts = plot.Multiples(figure+" by the number of copies at once", figure, unit, drawn, experiment.Bare)
	return all
}
