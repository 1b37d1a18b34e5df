package report

import (
	"slices"
	"strings"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/stats"
	"orrery/internal/lab/test"
)

// Effect is what a ratio says in one word.
type Effect string

// The effects. Told is for figures that are not judged.
const (
	Worse     Effect = "worse"
	Gain      Effect = "better"
	BitWorse  Effect = "a little worse" // surely, but perhaps by less than matters
	BitBetter Effect = "a little better"
	Failing   Effect = "fails"
	Apart     Effect = "these two runs differ" // of single runs that are compared
	AsFormer  Effect = "as former runs differ"
	Alike     Effect = "same"
	Undecided Effect = "undecided"
	Disturbed Effect = "not measurable now"
	Told      Effect = "told"
	Nothing   Effect = ""
)

// signs stand beside the colour of an effect, which not everybody sees and no grey printer shows.
var signs = map[Effect]string{Worse: "▼", Gain: "▲", BitWorse: "▽", BitBetter: "△", Failing: "✕", Apart: "≠",
	AsFormer: "~", Alike: "=", Undecided: "?", Disturbed: "≈"}

// effectOf says what a ratio means where a figure is better in one way.
func effectOf(r *Ratio, better test.Better) Effect {
	switch {
	case r == nil:
		return Nothing
	case !judged(better):
		return Told
	case r.Verdict == stats.Unmeasurable:
		return Disturbed
	case r.Verdict == stats.Same:
		return Alike
	case r.Verdict == stats.Fails:
		return Failing
	case r.Verdict == stats.Apart:
		return Apart
	case r.Verdict == stats.AsFormer:
		return AsFormer
	case r.Verdict != stats.Differs && r.Verdict != stats.Slight:
		return Undecided
	}
	gain := (r.Value > 1) == (better == test.More)
	switch {
	case r.Verdict == stats.Slight && gain:
		return BitBetter
	case r.Verdict == stats.Slight:
		return BitWorse
	case gain:
		return Gain
	}
	return Worse
}

// Effect of a cell of this figure.
func (f *Figure) Effect(c *Cell) Effect {
	if c.Again != "" {
		return Nothing
	}
	return effectOf(c.Ratio, f.Better)
}

// differs reports whether the effect is a difference, and no chance or noise.
func (e Effect) differs() bool {
	return slices.Contains([]Effect{Worse, Gain, BitWorse, BitBetter, Failing, Apart}, e)
}

// Class is the effect as one class of the page, not several: page.css has a colour for each.
func (e Effect) Class() string { return strings.ReplaceAll(string(e), " ", "-") }

// A change is how a ratio is shown.
type change struct {
	Effect              Effect
	Change, Range, Sign string
}

// Said is the effect in words for people who see neither its sign nor its colour, or "" if Change
// already has these words.
func (c change) Said() string {
	if c.Change == string(c.Effect) {
		return ""
	}
	return string(c.Effect)
}

// changed shows a ratio; without one there is nothing to show. What is not measurable now has no
// number wherever people read, for it would be taken for one: neither in a table nor in a plot, nor
// in report.csv. Only report.json has it, with its verdict beside it.
func changed(r *Ratio, e Effect) change {
	switch {
	case r == nil:
		return change{Change: "–"}
	case e == Disturbed:
		return change{Effect: e, Change: string(e), Sign: signs[e]}
	}
	return change{e, quantity.Change(r.Value), ranged(quantity.Interval(r.Low, r.High), r.Range), signs[e]}
}

// shown is the ratio of a cell if it is shown as a number.
func (f *Figure) shown(c *Cell) *Ratio {
	if f.Effect(c) == Disturbed {
		return nil
	}
	return c.Ratio
}

// between shows the 95 % interval, or what is known in its place, named so.
func (x *Ratio) between() string { return ranged(quantity.Between(x.Low, x.High), x.Range) }

// ranged names a range. One of no width says nothing, least of all that it is sure.
func ranged(text string, few bool) string {
	low, high, _ := strings.Cut(text, " to ")
	switch {
	case few && low == strings.TrimSuffix(high, " %"):
		return "–"
	case few:
		return "range " + text
	}
	return text
}

// Scale of all medians of the figure.
func (f *Figure) Scale() quantity.Scale {
	var medians []float64
	for _, c := range f.Cells {
		if c.Summary != nil {
			medians = append(medians, c.Summary.Median)
		}
	}
	return quantity.ScaleOfFigure(f.Name, f.Unit, medians)
}

// way says which way a figure is better.
func way(b test.Better) string {
	switch b {
	case test.More:
		return "more is better"
	case test.Less:
		return "less is better"
	}
	return "not judged"
}

// Way says which way the figure is better.
func (f *Figure) Way() string { return way(f.Better) }

// columns are the settings that have a cell somewhere, without the controls and those that this
// host cannot have, in order: the first is bare.
func (r *Report) columns() (all []bundle.Setting) {
	used := map[string]bool{}
	for _, f := range r.Tests.Rows() {
		for _, c := range f.Cells {
			used[c.Setting] = true
		}
	}
	for _, s := range r.Bundle.Settings {
		if used[s.Name] && again(s) == "" && s.Missing == "" {
			all = append(all, s)
		}
	}
	return all
}

// Absent are the settings that this host cannot have.
func (r *Report) Absent() []bundle.Setting {
	return slices.DeleteFunc(slices.Clone(r.Bundle.Settings), func(s bundle.Setting) bool { return s.Missing == "" })
}

// A note is a label with its number in the list of suspects, from 1.
type note struct {
	Number int
	Name   string
}

// notes are the labels that a cell bears and not every cell does: marking each would say nothing.
func (suspects Suspects) notes(c *Cell) (all []note) {
	for _, m := range c.Labels {
		i := slices.IndexFunc(suspects, func(s Suspect) bool { return s.Name == m.Name })
		if i >= 0 && suspects[i].Cells < suspects[i].Of {
			all = append(all, note{i + 1, m.Name})
		}
	}
	slices.SortFunc(all, func(a, b note) int { return a.Number - b.Number })
	return all
}
