package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/stats"
	"orrery/internal/phrase"
)

// An Answer says in words what a setting costs.
type Answer struct {
	Setting   string
	About     string
	Worse     []Finding // the largest first
	Better    []Finding
	Same      int
	Undecided int
	Disturbed int // not measurable now
	Failed    int // figures without a value
}

// A Finding is one figure that differs from bare.
type Finding struct {
	Test, Figure string
	Ratio        *Ratio
}

// String tells it: lossless rate in capture −9.3 % (−10.1 to −8.2).
func (f Finding) String() string {
	r := f.Ratio
	return fmt.Sprintf("%s in %s %s (%s)", f.Figure, f.Test, quantity.Change(r.Value), quantity.Between(r.Low, r.High))
}

// Answers are one for each setting but bare, in order.
func (r *Report) Answers() (all []Answer) {
	for _, s := range r.columns() {
		if s.Name == experiment.Bare {
			continue
		}
		a := Answer{Setting: s.Name, About: s.About}
		for t, f := range r.figures() {
			a.add(t, f)
		}
		for _, found := range [][]Finding{a.Worse, a.Better} {
			slices.SortStableFunc(found, func(x, y Finding) int { return cmp.Compare(size(y), size(x)) })
		}
		all = append(all, a)
	}
	return all
}

func (a *Answer) add(t *Test, f *Figure) {
	c := f.cell(a.Setting)
	if c == nil || !judged(f.Better) {
		return
	}
	switch f.Effect(c) {
	case Worse:
		a.Worse = append(a.Worse, Finding{t.Name, f.Name, c.Ratio})
	case Gain:
		a.Better = append(a.Better, Finding{t.Name, f.Name, c.Ratio})
	case Alike:
		a.Same++
	case Undecided:
		a.Undecided++
	case Disturbed:
		a.Disturbed++
	default:
		a.Failed++
	}
}

func size(f Finding) float64 { return math.Abs(math.Log(f.Ratio.Value)) }

// Headline tells in a sentence what it costs.
func (a Answer) Headline() string {
	switch {
	case len(a.Worse) > 0:
		return "is worse in: " + some(a.Worse, "worse") + "."
	case a.Same+a.Undecided+len(a.Better) == 0 && a.Disturbed > 0:
		return "cannot be measured now: others use this host."
	case a.Same+a.Undecided+len(a.Better) == 0:
		return "gave no figure that can be compared with bare."
	case a.Undecided+a.Disturbed == 0:
		return "costs nothing."
	case a.Same+len(a.Better) == 0:
		return "cannot be told from bare by these rounds, nor called the same."
	}
	return "costs nothing that was found."
}

// Rest tells the other figures.
func (a Answer) Rest() string {
	var parts []string
	in := func(n int, what string) {
		if n == 0 {
			return
		}
		number := strconv.Itoa(n)
		if len(parts) == 0 {
			number = phrase.Count(n, "figure")
		}
		parts = append(parts, what+" in "+number)
	}
	in(a.Same, fmt.Sprintf("the same as bare within ±%.0f %%", stats.Margin*100))
	in(a.Undecided, "undecided")
	in(a.Disturbed, "not measurable now")
	in(a.Failed, "without a value")
	text := ""
	if len(parts) > 0 {
		text = "It is " + strings.Join(parts, ", ") + "."
	}
	if len(a.Better) > 0 {
		text = "It is better in: " + some(a.Better, "better") + ". " + text
	}
	return strings.TrimSpace(text)
}

// some lists the first findings and counts the others.
func some(all []Finding, what string) string {
	const shown = 4
	var parts []string
	for _, f := range all[:min(len(all), shown)] {
		parts = append(parts, f.String())
	}
	text := strings.Join(parts, ", ")
	if more := len(all) - shown; more > 0 {
		verb := "are"
		if more == 1 {
			verb = "is"
		}
		return fmt.Sprintf("%s; and %s %s %s", text, phrase.Count(more, "other figure"), verb, what)
	}
	return text
}
