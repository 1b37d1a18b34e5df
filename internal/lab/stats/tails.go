package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// LightTailed reports whether two measurements of the same differ as they do without bursts, so
// that their mean is better than one of them. Others who take a share of the host in one of three
// trials are in more than half of the means: medians then lie where there is nothing, and intervals
// are wide.
func LightTailed(again, once []float64) bool {
	logs := slices.DeleteFunc(logRatios(again, once), func(v float64) bool { return !finite(v) })
	if len(logs) < Enough {
		return false
	}
	slices.Sort(logs)
	const scale = 1.4826 // of a normal distribution: its standard deviation over its median absolute one
	return math.Sqrt(stat.Variance(logs, nil)) <= 1.5*scale*deviation(logs, median(logs))
}
