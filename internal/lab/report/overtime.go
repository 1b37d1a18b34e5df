package report

import (
	"fmt"
	"slices"
	"strconv"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/draw"
	"orrery/internal/lab/report/trace"
)

// OverTime draws the figures of a test that its tool told second by second, setting by setting.
func (p *page) OverTime(test string) (all []copiesChart) {
	for of := range runs(p.over, func(a, b trace.Over) bool { return a.Test == b.Test && a.Figure == b.Figure }) {
		if of[0].Test == test {
			all = append(all, copiesChart{of[0].Figure, overTime(of)})
		}
	}
	return all
}

// overTime draws one figure in all settings, with bare behind the others.
func overTime(settings []trace.Over) (charts []chart) {
	var medians []float64
	plot := draw.XY{}
	lines := make([][]draw.Spot, len(settings))
	var bare []draw.Spot
	for n, o := range settings {
		const seen = 300 // more spots are not seen
		for part := range slices.Chunk(spots(o), (len(o.Median)+seen-1)/seen) {
			lines[n] = append(lines[n], merged(part))
		}
		if o.Setting == experiment.Bare {
			bare = lines[n]
		}
		medians = append(medians, o.Median...)
		plot.Reach(lines[n])
	}
	plot.Scale = short(settings[0].Figure, settings[0].Unit, medians)
	for _, x := range draw.Steps(0, plot.Right, draw.RoundStep(plot.Right)) {
		plot.Marks = append(plot.Marks, draw.Mark{X: x, Text: strconv.FormatFloat(x, 'g', 4, 64) + " s"})
	}
	for n, o := range settings {
		behind := bare
		if o.Setting == experiment.Bare {
			behind = nil
		}
		charts = append(charts, chart{o.Setting, plot.SVG(fmt.Sprintf("%s over time, %s", o.Figure, o.Setting), lines[n], behind)})
	}
	return charts
}

func spots(o trace.Over) (all []draw.Spot) {
	for i := range o.Median {
		all = append(all, draw.Spot{X: float64(i+1) * o.Step, Y: o.Median[i], Low: o.Least[i], High: o.Most[i]})
	}
	return all
}

// merged is one spot for several that follow one another: their mean, and the least and the most of all.
func merged(all []draw.Spot) draw.Spot {
	one := draw.Spot{X: all[len(all)-1].X, Low: all[0].Low, High: all[0].High}
	for _, s := range all {
		one.Y += s.Y / float64(len(all))
		one.Low, one.High = min(one.Low, s.Low), max(one.High, s.High)
	}
	return one
}
