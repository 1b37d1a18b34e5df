package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/quantity"
)

//go:embed compare.html.tmpl
var compareTemplate string

// A comparePage is what the template of a comparison shows.
type comparePage struct {
	Before, After, Headline, Legend string
	Style                           template.CSS
	Names, Notes, Only              []string
	Groups                          []compareGroup
	Facts                           []FactDifference
}

type compareGroup struct {
	Name    string
	Figures []compareFigure
	Axis    template.HTML
}

type compareFigure struct {
	Name, Way string
	Rows      []compareRow
}

type compareRow struct {
	Setting, Before, After                                 string
	Plot                                                   template.HTML
	Effect, CostEffect                                     Effect
	Sign, Change, Range                                    string
	CostBefore, CostAfter, CostSign, CostChange, CostRange string
}

// HTML writes the comparison as one file, like that of a report.
func (c *Comparison) HTML(w io.Writer) error {
	p := comparePage{Before: c.Before.ID, After: c.After.ID, Headline: c.headline(), Legend: compareLegend, Style: template.CSS(style), //nolint:gosec // ours
		Names: c.names(), Notes: c.Notes, Only: c.Only, Facts: c.Facts}
	for from := 0; from < len(c.Rows); {
		to := from
		for to < len(c.Rows) && c.Rows[to].Test == c.Rows[from].Test {
			to++
		}
		p.Groups = append(p.Groups, compareGroupOf(c.Rows[from:to]))
		from = to
	}
	return render(w, "compare", compareTemplate, p)
}

// compareGroupOf lays out the rows of one test.
func compareGroupOf(rows []Compared) compareGroup {
	ruler := newRuler()
	for _, r := range rows {
		if r.Value != nil {
			ruler.take(r.Value.Value, r.Value.Low, r.Value.High)
		}
	}
	g := compareGroup{Name: rows[0].Test, Axis: ruler.axis()}
	for i, r := range rows {
		if i == 0 || rows[i-1].Figure != r.Figure {
			g.Figures = append(g.Figures, compareFigure{Name: r.Figure, Way: (&Figure{Better: r.Better}).way()})
		}
		s := scaleFor(rows, r)
		row := compareRow{Setting: r.Setting, Before: s.Value(r.Before.Median), After: s.Value(r.After.Median), Effect: r.effect(r.Value),
			Plot: ruler.interval(r.Value, nil, r.effect(r.Value), string(r.effect(r.Value)))}
		value, cost := r.changed(r.Value), r.changed(r.Cost)
		row.Change, row.Range, row.Sign = value[0], value[1], value[2]
		if r.Setting != experiment.Bare {
			row.CostBefore, row.CostAfter, row.CostEffect = quantity.Change(r.CostBefore), quantity.Change(r.CostAfter), r.effect(r.Cost)
			row.CostChange, row.CostRange, row.CostSign = cost[0], cost[1], cost[2]
		}
		f := &g.Figures[len(g.Figures)-1]
		f.Rows = append(f.Rows, row)
	}
	return g
}

// headline counts what changed.
func (c *Comparison) headline() string {
	counts := map[Effect]int{}
	costs := map[Effect]int{}
	for _, r := range c.Rows {
		counts[r.effect(r.Value)]++
		if r.Cost != nil {
			costs[r.effect(r.Cost)]++
		}
	}
	tell := func(n map[Effect]int) string {
		var parts []string
		for _, e := range []Effect{Worse, Gain, Alike, Undecided, Disturbed} {
			if n[e] > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n[e], e))
			}
		}
		if len(parts) == 0 {
			return "nothing to judge"
		}
		return strings.Join(parts, ", ")
	}
	return "Values: " + tell(counts) + ". Costs against bare: " + tell(costs) + "."
}
