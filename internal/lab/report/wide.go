package report

import "orrery/internal/lab/stats"

// Wide reports whether an interval of a figure that is judged is wider than was aimed at, so that more rounds would tell more.
func (r *Report) Wide() bool {
	for _, c := range r.judgedCells() {
		if c.Ratio.High-c.Ratio.Low > r.Bundle.Width {
			return true
		}
	}
	return false
}

// Worth says how many rounds an instance of the nodes is worth if making one costs as much as so many rounds; 0: that is not known yet.
func (r *Report) Worth(cost float64) float64 {
	return stats.Rounds(r.components(), cost)
}

// components are what instances and rounds add to the spread of each ratio that tells.
func (r *Report) components() (all []stats.Components) {
	for _, c := range r.judgedCells() {
		if c.Ratio.Between.Is() {
			all = append(all, stats.Components{Known: true, Instances: float64(c.Ratio.Between), Rounds: float64(c.Ratio.Within)})
		}
	}
	return all
}

// judgedCells are those with a verdict.
func (r *Report) judgedCells() (all []*Cell) {
	for _, f := range r.figures() {
		for _, c := range f.Cells {
			if c.Ratio != nil && c.Ratio.Verdict != "" {
				all = append(all, c)
			}
		}
	}
	return all
}
