package report

import (
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/draw"
	"orrery/internal/lab/report/trace"
)

// OverTime returns charts of a test's figures that were measured every second, with a chart per
// setting.
func (p *page) OverTime(test string) (all []copiesChart) {
	for of := range groupConsecutive(p.over, func(a, b trace.TimeSeries) bool {
		return a.Test == b.Test &&
			a.Figure == b.Figure
	}) {
		if of[0].Test == test {
			all = append(all, copiesChart{of[0].Figure, draw.OverTime(of, experiment.Bare)})
		}
	}
	return all
}
