package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// IsLightTailed reports whether two measurements of the same thing differ as they do without bursts
// of load, so that their mean is better than one of them. Processes that take a share of the host
// in one of three trials affect more than half of the means. Medians then are where there are no
// values, and intervals are wide.
func IsLightTailed(again, once []float64) bool {
	logs := slices.DeleteFunc(logRatios(again, once), func(v float64) bool { return !finite(v) })
	if len(logs) < MinInstances {
		return false
	}
	slices.Sort(logs)
	const sdPerMAD = 1.4826 // standard deviation divided by median absolute deviation for a normal distribution
	return math.Sqrt(stat.Variance(logs, nil)) <= 1.5*sdPerMAD*deviation(logs, median(logs))
}
