package report

import "orrery/internal/lab/stats"

// Wide reports whether an interval of a figure that is judged is wider than was aimed at, so that more rounds would tell more.
func (r *Report) Wide() bool {
	for _, c := range r.judgedCells() {
		if float64(c.Ratio.High-c.Ratio.Low) > r.Bundle.Width {
			return true
		}
	}
	return false
}

// Worth says how many rounds an instance of the nodes is worth if making one costs as much as so many rounds; 0: that is not known yet.
func (r *Report) Worth(cost float64) float64 {
	var all []stats.Components
	for _, c := range r.judgedCells() {
		if c.Ratio.Between.Is() {
			all = append(all, stats.Components{Known: true, Instances: float64(c.Ratio.Between), Rounds: float64(c.Ratio.Within)})
		}
	}
	return stats.Rounds(all, cost)
}

// judgedCells are those with a verdict.
func (r *Report) judgedCells() (all []*Cell) {
	for i := range r.Tests {
		for k := range r.Tests[i].Figures {
			for c := range r.Tests[i].Figures[k].Cells {
				if cell := &r.Tests[i].Figures[k].Cells[c]; cell.Ratio != nil && cell.Ratio.Verdict != "" {
					all = append(all, cell)
				}
			}
		}
	}
	return all
}
