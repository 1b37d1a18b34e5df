package report

import (
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/draw"
)

// LossCharts returns the loss charts of all settings.
func (t *Test) LossCharts() (charts []chart) {
	var bare []draw.Point
	fastest := 0.0
	for _, c := range t.Curves {
		if c.Setting == experiment.Bare {
			bare = c.plotPoints()
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
		charts = append(charts, chart{Name: c.Setting, Plot: draw.Loss(c.Setting, c.plotPoints(), behind, fastest)})
	}
	return charts
}

func (c Curve) plotPoints() (all []draw.Point) {
	for _, p := range c.Points {
		all = append(all, draw.Point{X: p.Rate, Y: p.Lost})
	}
	return all
}
