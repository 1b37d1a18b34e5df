package report

import (
	"html/template"
	"math"

	"orrery/internal/lab/report/quantity"
)

// A spot is what a plot shows of one value: where it is across, how high, and its interval; low and high may be the same.
type spot struct{ x, y, low, high float64 }

// A mark across stands below a plot.
type across struct {
	x    float64
	text string
}

// An xyPlot has lines over the same two axes: its own, and in grey behind it that of bare.
type xyPlot struct {
	left, right, bottom, top float64 // what the axes reach
	scale                    quantity.Scale
	marks                    []across
}

// reach makes room for spots, upwards and, unless the axis begins at 0, downwards.
func (p *xyPlot) reach(all []spot) {
	for _, s := range all {
		p.left, p.right = min(p.left, s.x), max(p.right, s.x)
		p.bottom, p.top = min(p.bottom, s.low), max(p.top, s.high)
	}
}

// plot draws the lines. What it says, its label says, too.
func (p *xyPlot) plot(label string, own, behind []spot) template.HTML {
	const first, last, upper, lower = 17.0, 97.0, 8.0, 116.0 // per cent, and pixels
	d := &drawing{height: 138}
	at := func(x float64) float64 {
		if p.right == p.left {
			return (first + last) / 2
		}
		return first + (last-first)*(x-p.left)/(p.right-p.left)
	}
	up := func(y float64) float64 {
		if p.top == p.bottom {
			return (upper + lower) / 2
		}
		return lower - (lower-upper)*(y-p.bottom)/(p.top-p.bottom)
	}
	step := roundStep((p.top-p.bottom)*p.scale.Factor) / p.scale.Factor // round in the unit that is shown
	for y := math.Ceil(p.bottom/step) * step; step > 0 && y <= p.top; y += step {
		d.line("grid", first, up(y), last, up(y))
		d.text("tick", "end", first-1, up(y)+4, p.scale.Value(y))
	}
	for _, m := range p.marks {
		d.line("grid", at(m.x), lower, at(m.x), lower+4)
		d.text("tick", "middle", at(m.x), lower+17, m.text)
	}
	line := func(all []spot, class, dots string) {
		for i, s := range all {
			if i > 0 {
				d.line(class, at(all[i-1].x), up(all[i-1].y), at(s.x), up(s.y))
			}
			if s.low < s.high {
				d.line(class, at(s.x), up(s.low), at(s.x), up(s.high))
			}
		}
		for _, s := range all {
			d.dot(dots, at(s.x), up(s.y), 2.5)
		}
	}
	line(behind, "line behind", "behind")
	line(own, "line", "spot")
	return d.svg(label)
}

// thinned keeps so many marks of an axis that their texts have room.
func thinned(all []across) []across {
	const room = 7
	if len(all) <= room {
		return all
	}
	every := (len(all) + room - 1) / room
	var kept []across
	for i := 0; i < len(all); i += every {
		kept = append(kept, all[i])
	}
	return kept
}
