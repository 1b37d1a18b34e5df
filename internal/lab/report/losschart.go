package report

import (
	"fmt"
	"html/template"
	"math"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/draw"
	"orrery/internal/lab/report/quantity"
)

// plot draws what was lost at which rate, with the points of bare behind those of another setting. Loss is drawn by its square root: a
// capture is spoilt by far less than half.
func (c Curve) plot(bare *Curve, fastest float64) template.HTML {
	const upper, lower = 8, 128
	d := &draw.Drawing{Height: 150}
	s := quantity.ScaleOf("bit/s", []float64{fastest})
	s.Digits = 0
	if step := draw.RoundStep(fastest) * s.Factor; step < 1 {
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
	for rate, step := 0.0, draw.RoundStep(fastest); rate <= fastest; rate += step {
		d.Line("grid", across(rate), lower, across(rate), lower+4)
		d.Text("tick", "middle", across(rate), 145, s.Value(rate))
	}
	if bare != nil {
		for _, p := range bare.Points {
			d.Dot("behind", across(p.Rate), down(p.Lost), 2.5)
		}
	}
	for _, p := range c.Points {
		if p.Lost > 0 {
			d.Square("lossy", across(p.Rate), down(p.Lost), 2.5)
		} else {
			d.Dot("clean", across(p.Rate), down(p.Lost), 3)
		}
	}
	return d.SVG(fmt.Sprintf("Share lost by rate sent, %s: %d trials", c.Setting, len(c.Points)))
}

// LossCharts are those of all settings.
func (t *Test) LossCharts() (charts []chart) {
	var bare *Curve
	fastest := 0.0
	for i, c := range t.Curves {
		if c.Setting == experiment.Bare {
			bare = &t.Curves[i]
		}
		for _, p := range c.Points {
			fastest = max(fastest, p.Rate)
		}
	}
	if fastest == 0 {
		return nil
	}
	for _, c := range t.Curves {
		behind := bare
		if c.Setting == experiment.Bare {
			behind = nil
		}
		charts = append(charts, chart{c.Setting, c.plot(behind, fastest)})
	}
	return charts
}
