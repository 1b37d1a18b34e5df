package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"orrery/internal/lab/stats"
	"orrery/internal/text/humanize"
)

// The labels that the report itself adds, for what only the whole table shows.
const (
	controlLabel = "control"
	modesLabel   = "modes"
	serialLabel  = "autocorrelation"
)

// cures holds what to do about these labels.
var cures = map[string]string{
	controlLabel: "do not rely on any figure of this run; look for what the host does besides (orrery lab doctor), and run it again",
	modesLabel:   "look for what is at times so and at times otherwise: where memory lies, which queue or processor takes the packets; pin what can be pinned",
	serialLabel:  "more rounds (--rounds), or a host without slow moods: look at the traces below",
}

// labelByRatios labels cells according to their ratios.
func labelByRatios(r *Report) {
	for _, f := range r.Tests.Rows() {
		for _, c := range f.Cells {
			if c.Summary != nil && len(r.Controls) > 0 {
				c.mark(controlLabel, "the same differs from the same: "+r.Controls[0])
			}
			if c.Ratio != nil && c.Ratio.Modes {
				c.mark(modesLabel, "values lie in two heaps with nothing in between, so p is that of means as well as of medians")
			}
			if c.Ratio != nil && c.Ratio.Block > 1 {
				c.mark(serialLabel, fmt.Sprintf("neighbours in time are alike, so %d instances in a row count for one",
					c.Ratio.Block))
			}
		}
	}
}

// mark adds a label to a cell, as if all of its trials had it.
func (c *Cell) mark(name, why string) {
	c.Labels = append(c.Labels, Mark{Name: name, Count: c.Summary.N, Of: c.Summary.N, Why: why})
	slices.SortFunc(c.Labels, func(a, b Mark) int { return cmp.Compare(a.Name, b.Name) })
}

// instances returns the number of different node instances in the rounds.
func (r *Report) instances() int {
	all := slices.Clone(r.Nodes)
	slices.Sort(all)
	return len(slices.Compact(all))
}

// spread returns the median contributions of instances and of rounds to the spread of ratios. ok is
// false if no ratio has them.
func (tests Table) spread() (between, within float64, ok bool) {
	var instances, rounds []float64
	for _, c := range tests.components() {
		instances, rounds = append(instances, c.Instances), append(rounds, c.Rounds)
	}
	return stats.Summarize(instances, nil, 1).Median, stats.Summarize(rounds, nil, 1).Median, len(instances) > 0
}

// reliabilityWarnings returns warnings about results that are not reliable in the whole table.
func (r *Report) reliabilityWarnings() (all []string) {
	if n := r.instances(); r.Kept > 0 && n < stats.MinInstances {
		text := fmt.Sprintf("All rounds were done in %s of the nodes", humanize.Plural(n, "instance"))
		if r.Nodes[0] == 0 {
			text = "It was not recorded that nodes were made anew between rounds, so all rounds count as one instance of them"
		}
		all = append(all, text+fmt.Sprintf(
			". An instance is not a setting: what it costs may be its luck. With fewer than %d nothing is decided.",
			stats.MinInstances))
	}
	if len(r.Controls) > 0 {
		all = append(all, "The control differs, so the whole table is suspect. What is the same was measured as different: "+strings.Join(r.Controls,
			"; ")+".")
	}
	return append(all, r.Tests.unmeasurableWarnings()...)
}

// unmeasurableWarnings returns a warning about how much could not be measured.
func (tests Table) unmeasurableWarnings() []string {
	not, cells := 0, tests.judgedCells()
	for _, c := range cells {
		if c.Ratio.Verdict == stats.Unmeasurable {
			not++
		}
	}
	if not == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d figures are not measurable now: others used this host in too many of their rounds. Run it again when the host is quiet.",
		not, len(cells))}
}
