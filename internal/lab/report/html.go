package report

import (
	"html/template"
	"iter"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/draw"
	"orrery/internal/lab/report/quantity"
)

// A page holds the data of the template.
type page struct {
	*Report
	Style         template.CSS
	Columns       []bundle.Setting
	Traces, Round []chart
	Facts         []factGroup
}

type chart = draw.Chart

func (r *Report) page() *page {
	return &page{Report: r, Style: template.CSS(style), //nolint:gosec // ours
		Columns: r.columns(), Traces: draw.Traces(r.Traces), Round: draw.Traces(r.Round), Facts: facts(r.Facts)}
}

// An answerCell is a cell of the table of all figures.
type answerCell struct {
	Failed, Why string // instead of all other fields
	Value       string
	change
	Notes []note
}

// Cell returns the cell of a figure in a setting.
func (p *page) Cell(f *Figure, setting string) answerCell {
	c, s := f.cell(setting), f.Scale()
	switch {
	case c == nil:
		return answerCell{Failed: "–", Why: "not a part of this test"}
	case c.Summary == nil && c.Failed > 0:
		return answerCell{Failed: "failed", Why: c.Missing}
	case c.Summary == nil:
		return answerCell{Failed: "no value", Why: c.Missing}
	}
	cell := answerCell{Value: s.Number(c.Summary.Median), Notes: p.Suspects.notes(c)}
	switch {
	case setting == experiment.Bare:
		cell.Range = formatInterval(c.Summary, s)
	case c.Ratio != nil:
		cell.change = changed(c.Ratio, f.Effect(c))
	}
	return cell
}

type forestPage struct {
	Groups []forestGroup
	Axis   template.HTML
}

type forestGroup struct {
	*Figure
	Rows []forestRow
}

type forestRow struct {
	Setting string
	Plot    template.HTML
	change
}

// Forest returns the plot of a test's ratios, or nil if there are none.
func (t *Test) Forest() *forestPage {
	ruler := rulerOf(t)
	p := &forestPage{Axis: ruler.Axis()}
	for _, f := range t.Figures {
		g := forestGroup{Figure: f}
		for _, c := range f.Cells {
			if c.Ratio != nil && c.Setting != experiment.Bare {
				g.Rows = append(g.Rows, forestRow{c.Setting, cellPlot(ruler, f, c), changed(c.Ratio, f.Effect(c))})
			}
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

// A comparePage holds the data of the template for a comparison.
type comparePage struct {
	*Comparison
	Style  template.CSS
	Groups []compareGroup
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
	Setting, Before, After string
	Plot                   template.HTML
	Value                  change
	CostBefore, CostAfter  string
	Cost                   change
}

// page groups the rows by test and figure. They are in that order already.
func (c *Comparison) page() *comparePage {
	p := &comparePage{Comparison: c, Style: template.CSS(style)} //nolint:gosec // ours
	for rows := range groupConsecutive(c.Rows, func(a, b *Compared) bool { return a.Test == b.Test }) {
		ruler := draw.NewRuler()
		for _, r := range rows {
			if r.Value != nil {
				ruler.Extend(r.Value.Value, r.Value.Low, r.Value.High)
			}
		}
		g := compareGroup{Name: rows[0].Test, Axis: ruler.Axis()}
		for rows := range groupConsecutive(rows, func(a, b *Compared) bool { return a.Figure == b.Figure }) {
			f := compareFigure{Name: rows[0].Figure, Way: directionText(rows[0].Better)}
			for _, r := range rows {
				row := r.newRow(c.scaleFor(r))
				row.Plot = intervalPlot(ruler, r.Value, nil, row.Value.Effect, row.Value.Effect.Class())
				f.Rows = append(f.Rows, row)
			}
			g.Figures = append(g.Figures, f)
		}
		p.Groups = append(p.Groups, g)
	}
	return p
}

// newRow returns the texts of a row.
func (c *Compared) newRow(s quantity.Scale) compareRow {
	row := compareRow{Setting: c.Setting, Before: s.Value(c.Before.Median), After: s.Value(c.After.Median),
		Value: c.changed(c.Value)}
	if c.Setting != experiment.Bare {
		row.CostBefore, row.CostAfter, row.Cost = quantity.Change(float64(c.CostBefore)),
			quantity.Change(float64(c.CostAfter)), c.changed(c.Cost)
	}
	return row
}

// groupConsecutive iterates over the stretches of consecutive items that are alike.
func groupConsecutive[T any](all []T, alike func(a, b T) bool) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for len(all) > 0 {
			n := 1
			for n < len(all) && alike(all[0], all[n]) {
				n++
			}
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}
