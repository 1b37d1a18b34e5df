package report

import (
	"html/template"
	"math"
	"slices"

	"orrery/internal/lab/report/draw"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/stats"
)

// A ruler maps ratios to places across a drawing, by their logarithm: half as much is as far from 1 as twice as much.
type ruler struct{ low, high float64 } // logarithms

// edge is the room left and right, in per cent.
const edge = 2.0

// newRuler covers ±8 %, and grows with what it takes in.
func newRuler() *ruler { return &ruler{math.Log(0.92), math.Log(1.08)} }

// take makes room for ratios.
func (r *ruler) take(all ...float64) {
	for _, n := range all {
		if n > 0 {
			x := math.Log(n)
			r.low, r.high = min(r.low, x), max(r.high, x)
		}
	}
}

// rulerOf covers all intervals of a test.
func rulerOf(t *Test) *ruler {
	r := newRuler()
	for _, f := range t.Figures {
		for _, c := range f.Cells {
			if x := f.shown(c); x != nil {
				r.take(x.Value, x.Low, x.High)
			}
		}
		if f.Control != nil {
			r.take(f.Control.Low, f.Control.High)
		}
	}
	return r
}

// at gives the place of a ratio, from 0 to 100.
func (r *ruler) at(ratio float64) float64 {
	x := (math.Log(max(ratio, 1e-9)) - r.low) / (r.high - r.low)
	return edge + (100-2*edge)*min(1, max(0, x))
}

// ticks are ratios worth a line, far enough from each other for their text.
func (r *ruler) ticks() (all []float64) {
	const apart = 11
	for _, t := range []float64{1, 0.95, 1.05, 0.9, 1.1, 0.8, 1.25, 0.5, 2, 0.25, 4, 0.1, 10, 0.01, 100, 0.7, 1.5, 3, 0.85, 1.15} {
		if x := math.Log(t); x < r.low || x > r.high {
			continue
		}
		free := true
		for _, other := range all {
			free = free && math.Abs(r.at(t)-r.at(other)) >= apart
		}
		if free {
			all = append(all, t)
		}
	}
	return all
}

const rowHeight = 24

// row draws the interval of one cell over the bands.
func (r *ruler) row(f *Figure, c *Cell) template.HTML {
	effect := f.Effect(c)
	class := effect.Class()
	if c.Again != "" {
		class = "control"
	}
	return r.interval(c.Ratio, f.Control, effect, class)
}

// interval draws a ratio. What differs is a square, the rest is round: the shape tells what the colour tells, too. What is not measurable now
// is a dotted line from edge to edge: it may be anywhere.
func (r *ruler) interval(x *Ratio, control *Band, effect Effect, class string) template.HTML {
	d := &draw.Drawing{Height: rowHeight}
	const top, middle, bottom = 0, rowHeight / 2, rowHeight
	d.Rect("sameband", r.at(1-stats.Margin), top, r.at(1+stats.Margin), bottom)
	if control != nil {
		d.Rect("aaband", r.at(control.Low), top+3, r.at(control.High), bottom-3)
	}
	for _, t := range r.ticks() {
		d.Line("grid", r.at(t), top, r.at(t), bottom)
	}
	d.Line("one", r.at(1), top, r.at(1), bottom)
	switch {
	case x == nil:
		return d.SVG("")
	case effect == Disturbed:
		d.Line("iv "+Disturbed.Class(), 0, middle, 100, middle)
		return d.SVG("")
	}
	low, high := r.at(x.Low), r.at(x.High)
	d.Line("iv "+class, low, middle, high, middle)
	d.Line("iv "+class, low, middle-4, low, middle+4)
	d.Line("iv "+class, high, middle-4, high, middle+4)
	if at := r.at(x.Value); effect.differs() {
		d.Square("mark "+class, at, middle, 4.5)
	} else {
		d.Dot("mark "+class, at, middle, 4.5)
	}
	return d.SVG("")
}

// axis draws the ticks' text. What is minor is left out where the plot is narrow: then only equal and the outermost ticks have room.
func (r *ruler) axis() template.HTML {
	d := &draw.Drawing{Height: 18}
	major := r.major()
	for _, t := range r.ticks() {
		class := "tick"
		if !slices.Contains(major, t) {
			class = "tick minor"
		}
		d.Text(class, "middle", r.at(t), 13, tick(t))
	}
	return d.SVG("")
}

// major are the ticks for which a narrow plot has room.
func (r *ruler) major() (all []float64) {
	const apart = 28 // per cent of its width
	ticks := r.ticks()
	slices.Sort(ticks)
	if len(ticks) == 0 {
		return nil
	}
	for _, t := range []float64{1, ticks[len(ticks)-1], ticks[0]} {
		if slices.Contains(ticks, t) && !slices.ContainsFunc(all, func(other float64) bool { return math.Abs(r.at(t)-r.at(other)) < apart }) {
			all = append(all, t)
		}
	}
	return all
}

// tick writes a ratio short: equal, −25 %, × 4.
func tick(ratio float64) string {
	switch {
	case ratio == 1:
		return "equal"
	case ratio >= 2:
		return "× " + quantity.Scale{Factor: 1}.Number(ratio)
	}
	text := quantity.Scale{Factor: 100}.Number(ratio - 1)
	if ratio > 1 {
		text = "+" + text
	}
	return text + " %"
}
