package draw

import (
	"fmt"
	"html/template"
	"math"

	"orrery/internal/lab/report/quantity"
)

// Loss draws the lost share (Y) at each rate (X) up to the fastest, with the points of bare behind
// those of another setting. The Y axis is the square root of the loss, because even a small loss
// spoils a capture.
func Loss(name string, points, behind []Point, fastest float64) template.HTML {
	const upper, lower = 8, 128
	d := &Drawing{Height: 150}
	s := quantity.ScaleOf("bit/s", []float64{fastest})
	s.Digits = 0
	if step := RoundStep(fastest) * s.Factor; step < 1 {
		s.Digits = int(math.Ceil(-math.Log10(step)))
	}
	across := func(rate float64) float64 { return 11 + 85*rate/fastest }
	down := func(lost float64) float64 {
		return lower - (lower-upper)*math.Sqrt(min(1, max(0, lost)))
	}
	for _, lost := range []float64{0, 0.01, 0.1, 0.5, 1} {
		d.Line("grid", 11, down(lost), 98, down(lost))
		d.Text("tick", "end", 10, down(lost)+4, fmt.Sprintf("%.0f %%", lost*100))
	}
	for rate, step := 0.0, RoundStep(fastest); rate <= fastest; rate += step {
		d.Line("grid", across(rate), lower, across(rate), lower+4)
		d.Text("tick", "middle", across(rate), 145, s.Value(rate))
	}
	for _, p := range behind {
		d.Dot("behind", across(p.X), down(p.Y), 2.5)
	}
	for _, p := range points {
		if p.Y > 0 {
			d.Square("lossy", across(p.X), down(p.Y), 2.5)
		} else {
			d.Dot("clean", across(p.X), down(p.Y), 3)
		}
	}
	return d.SVG(fmt.Sprintf("Share lost by rate sent, %s: %d trials", name, len(points)))
}
