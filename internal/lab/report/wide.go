package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"orrery/internal/lab/stats"
	"orrery/internal/text/humanize"
)

// NeedsMoreRounds reports whether more rounds are useful: whether a judged interval is wider than requested,
// an interval is not known yet, or a small difference is not confirmed.
func (r *Report) NeedsMoreRounds() bool {
	for _, c := range r.Tests.judgedCells() {
		if c.Ratio.suspected || c.Ratio.Range || c.Ratio.High-c.Ratio.Low > r.Bundle.Width || c.Ratio.isUnconfirmed() {
			return true
		}
	}
	return false
}

// isUnconfirmed reports whether x is a difference of less than twice the margin in too few instances
// to confirm it. A place may stay in one of two modes for ten rounds without any sign of it. With
// modes 6 % apart that change in one of 20 rounds, 5 % of tables stopped there.
func (x *Ratio) isUnconfirmed() bool {
	const confirms = 20
	return (x.Verdict == stats.Differs || x.Verdict == stats.Slight) && x.Instances < confirms &&
		math.Abs(math.Log(x.Value)) < 2*math.Log1p(stats.Margin)
}

// expectedDifference is the difference that a run should be able to find.
const expectedDifference = 0.10

// RoundsNeeded returns how many rounds it takes to find a difference in nine of ten runs, for the figure
// that needs the most. figures are those that need more rounds than the run had. The width of an
// interval is inversely proportional to the square root of the number of rounds.
func (r *Report) RoundsNeeded(difference float64) (rounds int, figures []string) {
	width := stats.WidthFor(difference)
	for t, f := range r.Tests.Rows() {
		most := 0
		for _, c := range f.Cells {
			if c.Ratio != nil && c.Ratio.Verdict != "" {
				x := c.Ratio
				most = max(most, stats.RoundsNeeded(stats.Result{Instances: x.Instances, BlockLength: x.Block,
					Low: x.Low, High: x.High, Range: x.Range}, r.Kept, width))
			}
		}
		if most > r.Kept {
			rounds = max(rounds, most)
			figures = append(figures, f.Name+" in "+t.Name)
		}
	}
	return rounds, figures
}

// moreRoundsNote returns what more rounds would show.
func (r *Report) moreRoundsNote() string {
	const told = 3
	rounds, figures := r.RoundsNeeded(expectedDifference)
	// if there are too few instances, another warning says that nothing is decided
	if len(figures) == 0 || r.instances() < stats.MinInstances {
		return ""
	}
	many := fmt.Sprintf("about %d", rounds)
	if rounds > stats.MaxRounds {
		many = fmt.Sprintf("more than %d", stats.MaxRounds)
	}
	text := fmt.Sprintf("These %d rounds may miss a difference of %.0f %% in %s: %s", r.Kept, 100*expectedDifference,
		humanize.Plural(len(figures), "figure"),
		strings.Join(figures[:min(told, len(figures))], ", "))
	if more := len(figures) - told; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text + fmt.Sprintf(". It takes %s rounds to find it in nine of ten runs: orrery lab run --until %.0f%%.",
		many, 100*expectedDifference)
}

// WithoutResults returns the tests that have no result in any setting, each with a reason.
func (tests Table) WithoutResults() (all []Failure) {
	for _, t := range tests {
		gave := func(f *Figure) bool {
			return slices.ContainsFunc(f.Cells, func(c *Cell) bool { return c.Summary != nil })
		}
		if len(t.Failures) == 0 || len(t.Figures) == 0 || slices.ContainsFunc(t.Figures, gave) {
			continue
		}
		f := t.Failures[0]
		f.Setting = t.Name // applies to the whole test
		all = append(all, f)
	}
	return all
}

// RoundsPerInstance returns how many rounds to measure per instance of the nodes, if creating an instance costs
// as much as the given number of rounds. It returns 0 if that is not known yet.
func (r *Report) RoundsPerInstance(cost float64) float64 {
	return stats.RoundsPerInstance(r.Tests.components(), cost)
}

// components returns the contributions of instances and of rounds to the spread, for each ratio
// that has them.
func (tests Table) components() (all []stats.Components) {
	for _, c := range tests.judgedCells() {
		if c.Ratio.Between.IsFinite() {
			all = append(all, stats.Components{Known: true, Instances: float64(c.Ratio.Between),
				Rounds: float64(c.Ratio.Within)})
		}
	}
	return all
}

// judgedCells returns the cells with a verdict.
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
