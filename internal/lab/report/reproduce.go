package report

import "fmt"

// reproduce are the commands that make and check this report.
func (r *Report) reproduce() []string {
	id := r.Bundle.ID
	return []string{
		fmt.Sprintf("orrery lab check %s     # recomputes every figure from the raw samples", id),
		fmt.Sprintf("orrery lab run %s/experiment.toml     # measures again", id),
		fmt.Sprintf("orrery lab compare %s NEW     # sets both side by side", id),
	}
}

// method tells how figures were made and judged.
const method = "Each figure is the median over rounds; the first round is a rehearsal and does not count. Settings take turns within a round, and each second " +
	"round goes the other way (ABBA), so that what drifts meets all alike. The ratio to bare is " +
	"the median of the ratios within rounds. Intervals are 95 % bootstrap intervals. p is adjusted over the whole table (Holm). A figure is the same only if its interval lies wholly within ±5 % of bare. It differs only " +
	"if the interval lies wholly outside of that, and beyond what bare differs from bare measured once more in the same rounds (A/A). All else is undecided. " +
	"Copies that ran at once are put together first: rates are summed, times averaged; a round in which a copy failed has no value."
