package draw

import (
	"html/template"
	"math"

	"orrery/internal/lab/report/quantity"
)

// A Point is one value in a plot: its position, its height, and its interval. Low and High may be
// equal.
type Point struct{ X, Y, Low, High float64 }

// A Mark is a text below a plot.
type Mark struct {
	X    float64
	Text string
}

// An XY is a plot of a line with, in grey behind it, that of bare.
type XY struct {
	Left, Right, Bottom, Top float64 // range of the axes
	Scale                    quantity.Scale
	Marks                    []Mark
}

// Extend extends the axes to include spots.
func (p *XY) Extend(all []Point) {
	for _, s := range all {
		p.Left, p.Right = min(p.Left, s.X), max(p.Right, s.X)
		p.Bottom, p.Top = min(p.Bottom, s.Low), max(p.Top, s.High)
	}
}

// SVG draws the lines. The label describes the plot for screen readers.
func (p *XY) SVG(label string, own, behind []Point) template.HTML {
	const first, last, upper, lower = 17.0, 97.0, 8.0, 116.0 // per cent (first, last) and pixels (upper, lower)
	d := &Drawing{Height: 138}
	at := func(x float64) float64 {
		if p.Right == p.Left {
			return (first + last) / 2
		}
		return first + (last-first)*(x-p.Left)/(p.Right-p.Left)
	}
	up := func(y float64) float64 {
		if p.Top == p.Bottom {
			return (upper + lower) / 2
		}
		return lower - (lower-upper)*(y-p.Bottom)/(p.Top-p.Bottom)
	}
	step := RoundStep((p.Top-p.Bottom)*p.Scale.Factor) / p.Scale.Factor // round in the displayed unit
	for _, y := range Steps(p.Bottom, p.Top, step) {
		d.Line("grid", first, up(y), last, up(y))
		d.Text("tick", "end", first-1, up(y)+4, p.Scale.Value(y))
	}
	for _, m := range p.Marks {
		d.Line("grid", at(m.X), lower, at(m.X), lower+4)
		d.Text("tick", "middle", at(m.X), lower+17, m.Text)
	}
	line := func(all []Point, class, dots string) {
		for i, s := range all {
			if i > 0 {
				d.Line(class, at(all[i-1].X), up(all[i-1].Y), at(s.X), up(s.Y))
			}
			if s.Low < s.High {
				d.Line(class, at(s.X), up(s.Low), at(s.X), up(s.High))
			}
		}
		for _, s := range all {
			d.Dot(dots, at(s.X), up(s.Y), 2.5)
		}
	}
	line(behind, "line behind", "behind")
	line(own, "line", "spot")
	return d.SVG(label)
}

// ThinMarks removes marks of an axis so that the texts of the others have space.
func ThinMarks(all []Mark) []Mark {
	const room = 7
	if len(all) <= room {
		return all
	}
	every := (len(all) + room - 1) / room
	var kept []Mark
	for i := 0; i < len(all); i += every {
		kept = append(kept, all[i])
	}
	return kept
}

// Steps returns the multiples of a step between two values. It returns only a few for any values,
// because they may come from an untrusted bundle.
func Steps(from, to, step float64) (all []float64) {
	const most = 12
	first := math.Ceil(from / step)
	for i := range most {
		if at := (first + float64(i)) * step; step > 0 && at <= to {
			all = append(all, at)
		}
	}
	return all
}

// RoundStep returns 1, 2 or 5 times a power of ten, so that most is two to four steps.
func RoundStep(most float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(most/2)))
	for _, times := range []float64{5, 2} {
		if times*power <= most/2 {
			return times * power
		}
	}
	return power
}
