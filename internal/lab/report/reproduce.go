package report

import (
	"fmt"
	"regexp"
)

// harmless is a name that a shell takes as it is.
var harmless = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Reproduce are the commands that make and check this report.
func (r *Report) Reproduce() []string {
	id := r.Bundle.ID
	if !harmless.MatchString(id) {
		id = "BUNDLE" // what is to be copied into a shell is no place for what somebody may have written
	}
	return []string{
		fmt.Sprintf("orrery lab check %s     # recomputes every figure from the raw samples", id),
		fmt.Sprintf("orrery lab run %s/experiment.toml     # measures again", id),
		fmt.Sprintf("orrery lab compare %s NEW     # sets both side by side", id),
	}
}

// method tells how figures were made and judged.
const method = "Nodes are made anew between rounds: an instance of them is not the setting. Each figure is the median over instances, of the medians of their " +
	"rounds; the first round is a rehearsal and does not count. Settings take turns within a round, and each second " +
	"round goes the other way (ABBA), so that what drifts meets all alike. The ratio to bare is " +
	"the median of the ratios within rounds, by instance likewise. Intervals are 95 % bootstrap intervals over instances. p is adjusted over the whole table (Holm). A figure is the same only if its interval lies wholly within ±5 % of bare. It differs only " +
	"if the interval lies wholly outside of that, and beyond what bare differs from bare, and a container from the same container, measured once more in the same rounds (A/A). All else is undecided, and where others used " +
	"the host in too many rounds it is not measurable now. " +
	"Copies that ran at once are put together first: rates are summed, times averaged; a round in which a copy failed has no value."
