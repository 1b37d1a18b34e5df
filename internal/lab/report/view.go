package report

import (
	"slices"
	"strings"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/stats"
	"orrery/internal/lab/test"
)

// Effect is the meaning of a ratio in one word.
type Effect string

// The effects. Told is for figures that are not judged.
const (
	Worse             Effect = "worse"
	Better            Effect = "better"
	SlightlyWorse     Effect = "a little worse" // significant, but possibly smaller than the margin that matters
	SlightlyBetter    Effect = "a little better"
	Failing           Effect = "fails"
	RunsDiffer        Effect = "these two runs differ" // for comparisons of single runs
	RunsDifferAsUsual Effect = "as former runs differ"
	Same              Effect = "same"
	Undecided         Effect = "undecided"
	Disturbed         Effect = "not measurable now"
	Unjudged          Effect = "told"
	NoEffect          Effect = ""
)

// signs accompany the colours of effects for readers and printers that cannot show colours.
var signs = map[Effect]string{Worse: "▼", Better: "▲", SlightlyWorse: "▽", SlightlyBetter: "△", Failing: "✕",
	RunsDiffer:        "≠",
	RunsDifferAsUsual: "~", Same: "=", Undecided: "?", Disturbed: "≈"}

// effectOf returns the effect of a ratio, depending on which direction is better.
func effectOf(r *Ratio, better test.Direction) Effect {
	switch {
	case r == nil:
		return NoEffect
	case !isJudged(better):
		return Unjudged
	case r.Verdict == stats.Unmeasurable:
		return Disturbed
	case r.Verdict == stats.Same:
		return Same
	case r.Verdict == stats.Fails:
		return Failing
	case r.Verdict == stats.RunsDiffer:
		return RunsDiffer
	case r.Verdict == stats.RunsDifferAsUsual:
		return RunsDifferAsUsual
	case r.Verdict != stats.Differs && r.Verdict != stats.Slight:
		return Undecided
	}
	gain := (r.Value > 1) == (better == test.More)
	switch {
	case r.Verdict == stats.Slight && gain:
		return SlightlyBetter
	case r.Verdict == stats.Slight:
		return SlightlyWorse
	case gain:
		return Better
	}
	return Worse
}

// Effect returns the effect of a cell of this figure.
func (f *Figure) Effect(c *Cell) Effect {
	if c.Again != "" {
		return NoEffect
	}
	return effectOf(c.Ratio, f.Better)
}

// differs reports whether the effect is a real difference.
func (e Effect) differs() bool {
	return slices.Contains([]Effect{Worse, Better, SlightlyWorse, SlightlyBetter, Failing, RunsDiffer}, e)
}

// Class returns the effect as a single CSS class. page.css has a colour for each.
func (e Effect) Class() string { return strings.ReplaceAll(string(e), " ", "-") }

// A change holds the texts of a ratio.
type change struct {
	Effect              Effect
	Change, Range, Sign string
}

// Said returns the effect in words for readers who cannot see its sign or its colour, or "" if
// Change has the same words.
func (c change) Said() string {
	if c.Change == string(c.Effect) {
		return ""
	}
	return string(c.Effect)
}

// changed returns the texts of a ratio, or a dash if there is none. An unmeasurable ratio has no
// number in tables, plots and report.csv, because readers would take it for a result. Only
// report.json has the number, next to its verdict.
func changed(r *Ratio, e Effect) change {
	switch {
	case r == nil:
		return change{Change: "–"}
	case e == Disturbed:
		return change{Effect: e, Change: string(e), Sign: signs[e]}
	}
	return change{e, quantity.Change(r.Value), markRange(quantity.Interval(r.Low, r.High), r.Range), signs[e]}
}

// shownRatio returns the ratio of a cell if it is shown as a number, or nil.
func (f *Figure) shownRatio(c *Cell) *Ratio {
	if f.Effect(c) == Disturbed {
		return nil
	}
	return c.Ratio
}

// between returns the 95 % interval, or the range if there are too few instances.
func (x *Ratio) between() string { return markRange(quantity.Between(x.Low, x.High), x.Range) }

// markRange marks a range as such. A range of one value is shown as a dash, so that it does not look
// certain.
func markRange(text string, few bool) string {
	low, high, _ := strings.Cut(text, " to ")
	switch {
	case few && low == strings.TrimSuffix(high, " %"):
		return "–"
	case few:
		return "range " + text
	}
	return text
}

// Scale returns the scale of all medians of the figure.
func (f *Figure) Scale() quantity.Scale {
	var medians []float64
	for _, c := range f.Cells {
		if c.Summary != nil {
			medians = append(medians, c.Summary.Median)
		}
	}
	return quantity.ScaleOfFigure(f.Name, f.Unit, medians)
}

// directionText returns which direction is better, in words.
func directionText(b test.Direction) string {
	switch b {
	case test.More:
		return "more is better"
	case test.Less:
		return "less is better"
	}
	return "not judged"
}

// Way returns which direction is better for the figure, in words.
func (f *Figure) Way() string { return directionText(f.Better) }

// columns returns the settings that have a cell, in order, with bare first. It omits controls and
// settings that are not available on this host.
func (r *Report) columns() (all []bundle.Setting) {
	used := map[string]bool{}
	for _, f := range r.Tests.Rows() {
		for _, c := range f.Cells {
			used[c.Setting] = true
		}
	}
	for _, s := range r.Bundle.Settings {
		if used[s.Name] && repeatedSetting(s) == "" && s.Missing == "" {
			all = append(all, s)
		}
	}
	return all
}

// Absent returns the settings that are not available on this host.
func (r *Report) Absent() []bundle.Setting {
	return slices.DeleteFunc(slices.Clone(r.Bundle.Settings), func(s bundle.Setting) bool { return s.Missing == "" })
}

// A note is a label and its number in the list of suspects, from 1.
type note struct {
	Number int
	Name   string
}

// notes returns the labels of a cell, except those that every cell has.
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
