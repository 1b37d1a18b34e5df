package report

import (
	"fmt"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/quantity"
)

// Answer returns the table of all figures: the values of bare, then the difference of each setting.
func (r *Report) Answer() *grid {
	g := &grid{Head: []string{"", experiment.Bare}}
	for _, s := range r.columns() {
		if s.Name != experiment.Bare {
			g.Head = append(g.Head, s.Name)
		}
	}
	g.Head = append(g.Head, "A/A")
	for t, f := range r.Tests.Rows() {
		row := []string{t.Name + ", " + f.Name, "–"}
		s := f.Scale()
		if c := f.cell(experiment.Bare); c != nil && c.Summary != nil {
			row[1] = s.Value(c.Summary.Median) + r.Suspects.noteNumbers(c)
		}
		for _, name := range g.Head[2 : len(g.Head)-1] {
			row = append(row, f.brief(f.cell(name), s, r.Suspects))
		}
		g.add(append(row, formatAABand(f.Control))...)
	}
	return g
}

// brief returns a cell in a few characters.
func (f *Figure) brief(c *Cell, s quantity.Scale, suspects Suspects) string {
	switch {
	case c == nil:
		return ""
	case c.Summary == nil && c.Failed > 0:
		return "failed"
	case c.Summary == nil:
		return "none"
	case c.Ratio == nil:
		return s.Value(c.Summary.Median) + suspects.noteNumbers(c)
	}
	shown := changed(c.Ratio, f.Effect(c))
	text := shown.Change
	switch {
	case shown.Effect == Disturbed:
		text = shown.Sign // the legend explains the sign
	case shown.Sign != "":
		text += " " + shown.Sign
	}
	return text + suspects.noteNumbers(c)
}

// noteNumbers returns the numbers of a cell's notes.
func (suspects Suspects) noteNumbers(c *Cell) (text string) {
	for _, n := range suspects.notes(c) {
		text += fmt.Sprintf(" [%d]", n.Number)
	}
	return text
}

// formatAABand returns the band of bare against bare.
func formatAABand(b *Band) string {
	if b == nil {
		return "–"
	}
	return markRange(quantity.Between(b.Low, b.High), b.Range)
}
