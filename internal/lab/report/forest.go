package report

import (
	"html/template"

	"orrery/internal/lab/report/draw"
	"orrery/internal/lab/stats"
)

// rulerOf returns a ruler that covers all intervals of a test.
func rulerOf(t *Test) *draw.Ruler {
	r := draw.NewRuler()
	for _, f := range t.Figures {
		for _, c := range f.Cells {
			if x := f.shownRatio(c); x != nil {
				r.Extend(x.Value, x.Low, x.High)
			}
		}
		if f.Control != nil {
			r.Extend(f.Control.Low, f.Control.High)
		}
	}
	return r
}

const rowHeight = 24

// cellPlot draws the interval of one cell over the bands.
func cellPlot(r *draw.Ruler, f *Figure, c *Cell) template.HTML {
	effect := f.Effect(c)
	class := effect.Class()
	if c.Again != "" {
		class = "control"
	}
	return intervalPlot(r, c.Ratio, f.Control, effect, class)
}

// intervalPlot draws a ratio. A difference is a square and everything else is round, so that the
// shape shows what the colour shows. An unmeasurable ratio is a dotted line over the full width,
// because its value may be anywhere.
func intervalPlot(r *draw.Ruler, x *Ratio, control *Band, effect Effect, class string) template.HTML {
	d := &draw.Drawing{Height: rowHeight}
	const top, middle, bottom = 0, rowHeight / 2, rowHeight
	d.Rect("sameband", r.At(1-stats.Margin), top, r.At(1+stats.Margin), bottom)
	if control != nil {
		d.Rect("aaband", r.At(control.Low), top+3, r.At(control.High), bottom-3)
	}
	for _, t := range r.Ticks() {
		d.Line("grid", r.At(t), top, r.At(t), bottom)
	}
	d.Line("one", r.At(1), top, r.At(1), bottom)
	switch {
	case x == nil:
		return d.SVG("")
	case effect == Disturbed:
		d.Line("iv "+Disturbed.Class(), 0, middle, 100, middle)
		return d.SVG("")
	}
	low, high := r.At(x.Low), r.At(x.High)
	d.Line("iv "+class, low, middle, high, middle)
	d.Line("iv "+class, low, middle-4, low, middle+4)
	d.Line("iv "+class, high, middle-4, high, middle+4)
	if at := r.At(x.Value); effect.differs() {
		d.Square("mark "+class, at, middle, 4.5)
	} else {
		d.Dot("mark "+class, at, middle, 4.5)
	}
	return d.SVG("")
}
