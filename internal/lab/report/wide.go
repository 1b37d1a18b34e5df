package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"orrery/internal/lab/stats"
	"orrery/internal/text/humanize"
)

// Wide reports whether an interval of a figure that is judged is wider than was aimed at, or none
// can be told yet, or a small difference is not confirmed, so that more rounds would tell more.
func (r *Report) Wide() bool {
	for _, c := range r.Tests.judgedCells() {
		if c.Ratio.suspected || c.Ratio.Range || c.Ratio.High-c.Ratio.Low > r.Bundle.Width || c.Ratio.unconfirmed() {
			return true
		}
	}
	return false
}

// unconfirmed reports a difference of less than twice the margin in fewer instances than confirm
// it. A place may be in one of two modes for ten rounds on end, and nothing shows that: with modes
// 6 % apart that it leaves in one of 20 rounds, 5 % of tables ended there.
func (x *Ratio) unconfirmed() bool {
	const confirms = 20
	return (x.Verdict == stats.Differs || x.Verdict == stats.Slight) && x.Instances < confirms &&
		math.Abs(math.Log(x.Value)) < 2*math.Log1p(stats.Margin)
}

// usual is the difference that a run should find.
const usual = 0.10

// Needed says about how many rounds it takes until a difference of so much is found in nine of ten
// runs, in the figure that needs the most, and which figures need more than there were. Intervals
// narrow with the square root of their number.
func (r *Report) Needed(difference float64) (rounds int, figures []string) {
	width := stats.WidthFor(difference)
	for t, f := range r.Tests.Rows() {
		most := 0
		for _, c := range f.Cells {
			if c.Ratio != nil && c.Ratio.Verdict != "" {
				x := c.Ratio
				most = max(most, stats.Needed(stats.Judged{Instances: x.Instances, Block: x.Block, Low: x.Low, High: x.High,
					Range: x.Range}, r.Kept, width))
			}
		}
		if most > r.Kept {
			rounds = max(rounds, most)
			figures = append(figures, f.Name+" in "+t.Name)
		}
	}
	return rounds, figures
}

// outlook says what more rounds would tell.
func (r *Report) outlook() string {
	const told = 3
	rounds, figures := r.Needed(usual)
	if len(figures) == 0 || r.instances() < stats.Enough { // of too few it is said that nothing is decided
		return ""
	}
	many := fmt.Sprintf("about %d", rounds)
	if rounds > stats.MaxNeeded {
		many = fmt.Sprintf("more than %d", stats.MaxNeeded)
	}
	text := fmt.Sprintf("These %d rounds may miss a difference of %.0f %% in %s: %s", r.Kept, 100*usual,
		humanize.Count(len(figures), "figure"),
		strings.Join(figures[:min(told, len(figures))], ", "))
	if more := len(figures) - told; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text + fmt.Sprintf(". It takes %s rounds to find it in nine of ten runs: orrery lab run --until %.0f%%.",
		many, 100*usual)
}

// Barren are the tests that gave nothing in any setting, each with a reason.
func (tests Table) Barren() (all []Failure) {
	for _, t := range tests {
		gave := func(f *Figure) bool {
			return slices.ContainsFunc(f.Cells, func(c *Cell) bool { return c.Summary != nil })
		}
		if len(t.Failures) == 0 || len(t.Figures) == 0 || slices.ContainsFunc(t.Figures, gave) {
			continue
		}
		f := t.Failures[0]
		f.Setting = t.Name // it is of the whole test
		all = append(all, f)
	}
	return all
}

// Worth says how many rounds an instance of the nodes is worth if making one costs as much as so
// many rounds; 0: that is not known yet.
func (r *Report) Worth(cost float64) float64 {
	return stats.Rounds(r.Tests.components(), cost)
}

// components are what instances and rounds add to the spread of each ratio that tells.
func (tests Table) components() (all []stats.Components) {
	for _, c := range tests.judgedCells() {
		if c.Ratio.Between.Is() {
			all = append(all, stats.Components{Known: true, Instances: float64(c.Ratio.Between),
				Rounds: float64(c.Ratio.Within)})
		}
	}
	return all
}

// judgedCells are those with a verdict.
func (tests Table) judgedCells() (all []*Cell) {
	for _, f := range tests.Rows() {
		for _, c := range f.Cells {
			if c.Ratio != nil && c.Ratio.Verdict != "" {
				all = append(all, c)
			}
		}
	}
	return all
}
