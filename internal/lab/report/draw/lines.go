package draw

import (
	"html/template"
	"slices"
	"strconv"

	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/report/trace"
)

// A Chart is a drawing with its caption.
type Chart struct {
	Name string
	Plot template.HTML
}

// A Line holds the values of one setting in a plot.
type Line struct {
	Name  string
	Spots []Point
}

// Multiples draws each line in a separate chart with the same axes. The line called behind appears
// in grey in the charts of the others. The label of each chart is made of what and the name of the
// line.
func (p *XY) Multiples(what, figure, unit string, lines []Line, behind string) (charts []Chart) {
	var values []float64
	var grey []Point
	for _, l := range lines {
		p.Extend(l.Spots)
		for _, s := range l.Spots {
			values = append(values, s.Y)
		}
		if l.Name == behind {
			grey = l.Spots
		}
	}
	p.Scale = axisScale(figure, unit, values)
	for _, l := range lines {
		back := grey
		if l.Name == behind {
			back = nil
		}
		charts = append(charts, Chart{l.Name, p.SVG(what+", "+l.Name, l.Spots, back)})
	}
	return charts
}

// OverTime draws one figure over the time of a trial in all settings, with bare behind the others.
func OverTime(settings []trace.TimeSeries, bare string) []Chart {
	const seen = 300 // more spots cannot be distinguished
	var lines []Line
	end := 0.0
	for _, o := range settings {
		line := Line{Name: o.Setting}
		for part := range slices.Chunk(pointsOf(o), (len(o.Median)+seen-1)/seen) {
			line.Spots = append(line.Spots, mergePoints(part))
		}
		lines = append(lines, line)
		end = max(end, float64(len(o.Median))*o.Step)
	}
	plot := XY{}
	for _, x := range Steps(0, end, RoundStep(end)) {
		plot.Marks = append(plot.Marks, Mark{x, strconv.FormatFloat(x, 'g', 4, 64) + " s"})
	}
	return plot.Multiples(settings[0].Figure+" over time", settings[0].Figure, settings[0].Unit, lines, bare)
}

func pointsOf(o trace.TimeSeries) (all []Point) {
	for i := range o.Median {
		all = append(all, Point{X: float64(i+1) * o.Step, Y: o.Median[i], Low: o.Least[i], High: o.Most[i]})
	}
	return all
}

// mergePoints combines consecutive spots into one, with their mean, minimum and maximum.
func mergePoints(all []Point) Point {
	one := Point{X: all[len(all)-1].X, Low: all[0].Low, High: all[0].High}
	for _, s := range all {
		one.Y += s.Y / float64(len(all))
		one.Low, one.High = min(one.Low, s.Low), max(one.High, s.High)
	}
	return one
}

// axisScale returns a scale with only as many digits as an axis needs.
func axisScale(figure, unit string, values []float64) quantity.Scale {
	s := quantity.ScaleOfFigure(figure, unit, slices.Clone(values))
	largest := 0.0
	for _, v := range values {
		largest = max(largest, v*s.Factor)
	}
	switch {
	case largest >= 10:
		s.Digits = 0
	case largest >= 1:
		s.Digits = 1
	}
	return s
}
