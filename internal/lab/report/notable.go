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
	controlLabel: "do not rely on any figure of this run; find out what else the host does (orrery lab doctor), and run it again",
	modesLabel:   "find out what alternates between two states, such as the placement of memory or the queue that receives packets; pin what can be pinned",
	serialLabel:  "run more rounds (--rounds), or use a host whose speed does not drift: see the traces below",
}

// labelByRatios labels cells according to their ratios.
func labelByRatios(r *Report) {
	for _, f := range r.Tests.Rows() {
		for _, c := range f.Cells {
			if c.Summary != nil && len(r.Controls) > 0 {
				c.mark(controlLabel, "identical settings differ: "+r.Controls[0])
			}
			if c.Ratio != nil && c.Ratio.Modes {
				c.mark(modesLabel, "values form two separate clusters, so p considers means as well as medians")
			}
			if c.Ratio != nil && c.Ratio.Block > 1 {
				c.mark(serialLabel, fmt.Sprintf("consecutive values are correlated, so %d instances in a row count as one",
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
		text := fmt.Sprintf("All rounds used %s of the nodes", humanize.Plural(n, "instance"))
		if r.Nodes[0] == 0 {
			text = "It was not recorded whether nodes were recreated between rounds, so all rounds count as one instance"
		}
		all = append(all, text+fmt.Sprintf(
			". An instance is not a setting: its cost may be chance. With fewer than %d instances there are no verdicts.",
			stats.MinInstances))
	}
	if len(r.Controls) > 0 {
		all = append(all, "A control differs, so the whole table is suspect. Identical settings were measured as different: "+strings.Join(r.Controls,
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
	return []string{fmt.Sprintf("%d of %d figures are not measurable now: other processes used this host in too many rounds. Run it again when the host is idle.",
		not, len(cells))}
}
