package report

// Wide reports whether an interval of a figure that is judged is wider than was aimed at, so that more rounds would tell more.
func (r *Report) Wide() bool {
	for _, t := range r.Tests {
		for _, f := range t.Figures {
			for _, c := range f.Cells {
				if c.Ratio != nil && c.Ratio.Verdict != "" && float64(c.Ratio.High-c.Ratio.Low) > r.Bundle.Width {
					return true
				}
			}
		}
	}
	return false
}
