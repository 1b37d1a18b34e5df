package report

import (
	"orrery/internal/lab/bundle"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/stats"
	"orrery/internal/lab/test"
)

// Effect is what a cell says in one word.
type Effect string

// The effects. Told is for figures that are not judged.
const (
	Worse     Effect = "worse"
	Gain      Effect = "better"
	Alike     Effect = "same"
	Undecided Effect = "undecided"
	Disturbed Effect = "not measurable now"
	Told      Effect = "told"
	Nothing   Effect = ""
)

// sign stands beside the colour of an effect, which not everybody sees and no grey printer shows.
func (e Effect) sign() string {
	switch e {
	case Worse:
		return "▼"
	case Gain:
		return "▲"
	case Alike:
		return "="
	case Undecided:
		return "?"
	case Disturbed:
		return "≈"
	}
	return ""
}

// Effect of a cell of this figure.
func (f *Figure) Effect(c *Cell) Effect {
	switch {
	case c.Ratio == nil || c.Again != "":
		return Nothing
	case !judged(f.Better):
		return Told
	case c.Ratio.Verdict == stats.Unmeasurable:
		return Disturbed
	case c.Ratio.Verdict == stats.Same:
		return Alike
	case c.Ratio.Verdict != stats.Differs:
		return Undecided
	case (c.Ratio.Value > 1) == (f.Better == test.More):
		return Gain
	}
	return Worse
}

// scale of all medians of the figure.
func (f *Figure) scale() quantity.Scale {
	var medians []float64
	for _, c := range f.Cells {
		if c.Summary != nil {
			medians = append(medians, float64(c.Summary.Median))
		}
	}
	return quantity.ScaleOfFigure(f.Name, f.Unit, medians)
}

// way says which way the figure is better.
func (f *Figure) way() string {
	switch f.Better {
	case test.More:
		return "more is better"
	case test.Less:
		return "less is better"
	}
	return "not judged"
}

// columns are the settings that have a cell somewhere, without the controls, in order: the first is bare.
func (r *Report) columns() (names []string) {
	used := map[string]bool{}
	for _, t := range r.Tests {
		for _, f := range t.Figures {
			for _, c := range f.Cells {
				used[c.Setting] = true
			}
		}
	}
	for _, s := range r.Bundle.Settings {
		if used[s.Name] && again(s) == "" && s.Missing == "" {
			names = append(names, s.Name)
		}
	}
	return names
}

// about is the line that tells what a setting is.
func (r *Report) about(setting string) string {
	for _, s := range r.Bundle.Settings {
		if s.Name == setting {
			return s.About
		}
	}
	return ""
}

// absent are the settings that this host cannot have.
func (r *Report) absent() (all []bundle.Setting) {
	for _, s := range r.Bundle.Settings {
		if s.Missing != "" {
			all = append(all, s)
		}
	}
	return all
}

// everywhere reports whether a label is on all cells, so that marking each would say nothing.
func (r *Report) everywhere(label string) bool {
	for _, s := range r.Suspects {
		if s.Name == label {
			return s.Cells == s.Of
		}
	}
	return false
}

// note is the number of a label in the list of suspects, from 1.
func (r *Report) note(label string) int {
	for i, s := range r.Suspects {
		if s.Name == label {
			return i + 1
		}
	}
	return 0
}
