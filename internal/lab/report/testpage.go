package report

import (
	"fmt"
	"html/template"
	"slices"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/quantity"
)

// A testPage is the section of one test.
type testPage struct {
	section
	Source   string
	Failures []Failure
	Paper    *tablePage
	Forest   *forestPage
	Curves   []chart
	Deaths   *tablePage
	Singles  *tablePage
	Numbers  []numberLine
}

type tablePage struct {
	Caption string
	Head    []string
	Rows    [][]string
}

type forestPage struct {
	Groups []forestGroup
	Axis   template.HTML
}

type forestGroup struct {
	Figure, Way string
	Rows        []forestRow
}

type forestRow struct {
	Setting             string
	Plot                template.HTML
	Effect              Effect
	Sign, Change, Range string
}

type numberLine struct {
	Figure, Setting, Median, Interval, Reach, N, Relative, Spread, P, Verdict, Suspect, Why string
	Effect                                                                                  Effect
}

func (r *Report) testPage(t *Test, id string) testPage {
	p := testPage{section: section{id, t.Name}, Source: t.Source, Failures: t.Failures, Forest: forest(t), Deaths: deathTable(t.Deaths)}
	if t.paper() {
		g := t.asPaper()
		p.Paper = &tablePage{Head: g.head, Rows: g.rows}
	}
	if g := t.singles(); g != nil {
		p.Singles = &tablePage{Caption: fmt.Sprintf("Single copies, of %d that ran at once. Spread: median absolute deviation.", t.Copies), Head: g.head, Rows: g.rows}
	}
	p.Curves = lossCharts(t.Curves)
	for k := range t.Figures {
		f := &t.Figures[k]
		s := f.scale()
		for c := range f.Cells {
			if f.Cells[c].absent() {
				continue
			}
			p.Numbers = append(p.Numbers, r.numberLine(f, &f.Cells[c], s))
		}
	}
	return p
}

// forest gives nothing if there is no ratio to draw.
func forest(t *Test) *forestPage {
	ruler := rulerOf(t)
	p := &forestPage{Axis: ruler.axis()}
	for k := range t.Figures {
		f := &t.Figures[k]
		g := forestGroup{Figure: f.Name, Way: f.way()}
		for i := range f.Cells {
			c := &f.Cells[i]
			if c.Ratio == nil || c.Setting == experiment.Bare {
				continue
			}
			e := f.Effect(c)
			g.Rows = append(g.Rows, forestRow{c.Setting, ruler.row(f, c), e, e.sign(), quantity.Change(c.Ratio.Value), quantity.Between(c.Ratio.Low, c.Ratio.High) + " %"})
		}
		if len(g.Rows) > 0 {
			p.Groups = append(p.Groups, g)
		}
	}
	if len(p.Groups) == 0 {
		return nil
	}
	return p
}

func (r *Report) numberLine(f *Figure, c *Cell, s quantity.Scale) numberLine {
	if c.Summary == nil {
		return numberLine{Figure: f.Name, Setting: c.Setting, Why: firstLine(c.Missing)}
	}
	n := r.numbers(f, c, s)
	line := numberLine{Figure: f.Name, Setting: n[0], Median: n[1], Interval: n[2], N: n[3], Relative: n[4], Spread: n[7], Verdict: n[8], Suspect: n[9],
		Effect: f.Effect(c)}
	line.Median = s.Value(c.Summary.Median)
	line.Reach = s.Number(c.Summary.Least) + " to " + s.Number(c.Summary.Most)
	if c.Ratio != nil && judged(f.Better) && c.Again == "" {
		line.P = probability(c.Ratio.Adjusted)
	}
	return line
}

func probability(p quantity.Number) string {
	switch {
	case !p.Is():
		return "–"
	case p < 0.001:
		return "< 0.001"
	}
	return fmt.Sprintf("%.3f", float64(p))
}

func lossCharts(all []Curve) (charts []chart) {
	var bare *Curve
	fastest := 0.0
	for i, c := range all {
		if c.Setting == experiment.Bare {
			bare = &all[i]
		}
		for _, p := range c.Points {
			fastest = max(fastest, float64(p.Rate))
		}
	}
	if fastest == 0 {
		return nil
	}
	for _, c := range all {
		behind := bare
		if c.Setting == experiment.Bare {
			behind = nil
		}
		charts = append(charts, chart{c.Setting, c.plot(behind, fastest)})
	}
	return charts
}

// deathTable has a row for each setting and a column for each place; nil if nothing died.
func deathTable(all []Deaths) *tablePage {
	if len(all) == 0 {
		return nil
	}
	p := &tablePage{Caption: "Packets, over all rounds that count.", Head: []string{"setting"}}
	column := map[string]int{}
	for _, w := range way() {
		if slices.ContainsFunc(all, func(d Deaths) bool {
			return slices.ContainsFunc(d.Places, func(x Death) bool { return x.Place == w[1] })
		}) {
			column[w[1]] = len(p.Head)
			p.Head = append(p.Head, w[1])
		}
	}
	for _, d := range all {
		row := make([]string, len(p.Head))
		row[0] = d.Setting
		for i := 1; i < len(row); i++ {
			row[i] = "0"
		}
		for _, place := range d.Places {
			row[column[place.Place]] = d.share(place.Count)
		}
		p.Rows = append(p.Rows, row)
	}
	return p
}
