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
	"orrery/internal/text/humanize"
)

// An Answer describes in words what a setting costs.
type Answer struct {
	Setting   string
	About     string
	Worse     []Finding // in descending order of their size
	Better    []Finding
	BitWorse  []Finding // significant, but possibly smaller than the margin that matters
	BitBetter []Finding
	Failing   []Finding // fails more often than bare
	Broken    int       // figures with failed trials, possibly by chance
	Same      int
	Undecided int
	Disturbed int // figures that are not measurable now
	Failed    int // figures without a value
}

// A Finding is one figure that differs from bare.
type Finding struct {
	Test, Figure string
	Ratio        *Ratio
}

// String returns the finding as text: lossless rate in capture −9.3 % (−10.1 to −8.2).
func (f Finding) String() string {
	r := f.Ratio
	return fmt.Sprintf("%s in %s %s (%s)", f.Figure, f.Test, quantity.Change(r.Value), r.between())
}

// Failures returns how often the figure fails, such as "in 5 of 10 instances (bare: 0 of 10)".
func (f Finding) Failures() string {
	n := f.Ratio.Failures
	return fmt.Sprintf("%s in %s in %d of %d instances (bare: %d of %d)", f.Figure, f.Test, n.Setting, n.Of, n.Bare,
		n.BareOf)
}

// Answers returns an answer for each setting except bare, in order.
func (r *Report) Answers() (all []Answer) {
	for _, s := range r.columns() {
		if s.Name == experiment.Bare {
			continue
		}
		a := Answer{Setting: s.Name, About: s.About}
		for t, f := range r.Tests.Rows() {
			a.add(t, f)
		}
		for _, found := range [][]Finding{a.Worse, a.Better, a.BitWorse, a.BitBetter} {
			slices.SortStableFunc(found, func(x, y Finding) int { return cmp.Compare(effectSize(y), effectSize(x)) })
		}
		all = append(all, a)
	}
	return all
}

func (a *Answer) add(t *Test, f *Figure) {
	c := f.cell(a.Setting)
	if c == nil || !isJudged(f.Better) {
		return
	}
	found := Finding{t.Name, f.Name, c.Ratio}
	if c.Failed > 0 {
		a.Broken++
	}
	switch f.Effect(c) {
	case Worse:
		a.Worse = append(a.Worse, found)
	case Better:
		a.Better = append(a.Better, found)
	case SlightlyWorse:
		a.BitWorse = append(a.BitWorse, found)
	case SlightlyBetter:
		a.BitBetter = append(a.BitBetter, found)
	case Failing:
		a.Failing = append(a.Failing, found)
	case Same:
		a.Same++
	case Undecided:
		a.Undecided++
	case Disturbed:
		a.Disturbed++
	default:
		a.Failed++
	}
}

func effectSize(f Finding) float64 { return math.Abs(math.Log(f.Ratio.Value)) }

// Headline returns one sentence about the cost. A setting costs nothing only if all figures say so.
func (a Answer) Headline() string {
	compared := a.Same + a.Undecided + len(a.Better) + len(a.BitBetter)
	var parts []string
	if len(a.Failing) > 0 {
		parts = append(parts, "fails more often than bare: "+listFindings(a.Failing, Finding.Failures, "fails", "fail"))
	}
	if len(a.Worse) > 0 {
		parts = append(parts, "is worse in: "+listFindings(a.Worse, Finding.String, "is worse", "are worse"))
	}
	if len(a.BitWorse) > 0 {
		parts = append(parts, "is a little worse in: "+listFindings(a.BitWorse, Finding.String, "is a little worse",
			"are a little worse"))
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ". It ") + "."
	case compared == 0 && a.Disturbed > 0:
		return "cannot be measured now: other processes use this host."
	case compared == 0:
		return "has no figure that can be compared with bare."
	case a.Undecided+a.Disturbed+a.Failed+a.Broken == 0:
		return "costs nothing."
	case a.Same+len(a.Better)+len(a.BitBetter) == 0:
		return "is undecided: these rounds show neither a cost nor its absence."
	case a.Failed > a.Same+len(a.Better)+len(a.BitBetter):
		return "cannot be compared with bare: most figures have no value."
	}
	return "shows no cost."
}

// Rest returns how many other figures there are, by their effect.
func (a Answer) Rest() string {
	var parts []string
	in := func(n int, what string) {
		if n == 0 {
			return
		}
		number := strconv.Itoa(n)
		if len(parts) == 0 {
			number = humanize.Plural(n, "figure")
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
	if len(a.BitBetter) > 0 {
		text = "It is a little better in: " + listFindings(a.BitBetter, Finding.String, "is a little better",
			"are a little better") + ". " + text
	}
	if len(a.Better) > 0 {
		text = "It is better in: " + listFindings(a.Better, Finding.String, "is better", "are better") + ". " + text
	}
	if a.Broken > 0 {
		text += fmt.Sprintf(" Trials of %s failed.", humanize.Plural(a.Broken, "figure"))
	}
	return strings.TrimSpace(text)
}

// listFindings lists the first findings and counts the others.
func listFindings(all []Finding, tell func(Finding) string, one, many string) string {
	const shown = 4
	var parts []string
	for _, f := range all[:min(len(all), shown)] {
		parts = append(parts, tell(f))
	}
	text := strings.Join(parts, ", ")
	if more := len(all) - shown; more > 0 {
		verb := many
		if more == 1 {
			verb = one
		}
		return fmt.Sprintf("%s; and %s %s", text, humanize.Plural(more, "other figure"), verb)
	}
	return text
}
