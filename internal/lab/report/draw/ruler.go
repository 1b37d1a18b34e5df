package draw

import (
	"html/template"
	"math"
	"slices"

	"orrery/internal/lab/report/quantity"
)

// A Ruler maps the logarithm of a ratio to a position across a drawing: half as much is as far from
// 1 as twice as much.
type Ruler struct{ low, high float64 } // logarithms

// edge is the margin on the left and on the right, in per cent.
const edge = 2.0

// NewRuler returns a ruler for ±8 %. Take extends it.
func NewRuler() *Ruler { return &Ruler{math.Log(0.92), math.Log(1.08)} }

// Extend extends the ruler to cover ratios.
func (r *Ruler) Extend(all ...float64) {
	for _, n := range all {
		if n > 0 {
			x := math.Log(n)
			r.low, r.high = min(r.low, x), max(r.high, x)
		}
	}
}

// At returns the position of a ratio, from 0 to 100.
func (r *Ruler) At(ratio float64) float64 {
	x := (math.Log(max(ratio, 1e-9)) - r.low) / (r.high - r.low)
	return edge + (100-2*edge)*min(1, max(0, x))
}

// Ticks returns the ratios that have a line, with enough space between them for their texts.
func (r *Ruler) Ticks() (all []float64) {
	const apart = 11
	for _, t := range []float64{1, 0.95, 1.05, 0.9, 1.1, 0.8, 1.25, 0.5, 2, 0.25, 4, 0.1, 10, 0.01, 100, 0.7, 1.5, 3,
		0.85, 1.15} {
		if x := math.Log(t); x < r.low || x > r.high {
			continue
		}
		free := true
		for _, other := range all {
			free = free && math.Abs(r.At(t)-r.At(other)) >= apart
		}
		if free {
			all = append(all, t)
		}
	}
	return all
}

// Axis draws the texts of the ticks. The class minor hides those that do not fit in a narrow plot,
// where only equal and the outermost ticks have space.
func (r *Ruler) Axis() template.HTML {
	d := &Drawing{Height: 18}
	major := r.major()
	for _, t := range r.Ticks() {
		class := "tick"
		if !slices.Contains(major, t) {
			class = "tick minor"
		}
		d.Text(class, "middle", r.At(t), 13, tick(t))
	}
	return d.SVG("")
}

// major returns the ticks that have space in a narrow plot.
func (r *Ruler) major() (all []float64) {
	const apart = 28 // per cent of the width
	ticks := r.Ticks()
	slices.Sort(ticks)
	if len(ticks) == 0 {
		return nil
	}
	for _, t := range []float64{1, ticks[len(ticks)-1], ticks[0]} {
		if slices.Contains(ticks, t) &&
			!slices.ContainsFunc(all, func(other float64) bool { return math.Abs(r.At(t)-r.At(other)) < apart }) {
			all = append(all, t)
		}
	}
	return all
}

// tick formats a ratio for a tick: equal, −25 %, × 4.
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
