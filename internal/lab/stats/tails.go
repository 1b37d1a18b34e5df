package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// LightTailed reports whether two measurements of the same thing differ as they do without bursts
// of load, so that their mean is better than one of them. Processes that take a share of the host
// in one of three trials affect more than half of the means. Medians then are where there are no
// values, and intervals are wide.
func LightTailed(again, once []float64) bool {
	logs := slices.DeleteFunc(logRatios(again, once), func(v float64) bool { return !finite(v) })
	if len(logs) < Enough {
		return false
	}
	slices.Sort(logs)
	const scale = 1.4826 // standard deviation divided by median absolute deviation for a normal distribution
	return math.Sqrt(stat.Variance(logs, nil)) <= 1.5*scale*deviation(logs, median(logs))
}
