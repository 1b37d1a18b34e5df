package stats

import "math"

// WidthFor returns the maximum width of the interval of the logarithm of a ratio with which a
// difference is found in nine of ten runs. Found means that the interval is completely outside
// Margin. The distance from its end to the figure is half of the width, and the figure itself is
// off by a standard error. WidthFor returns 0 if the difference is within Margin and can never be
// found.
func WidthFor(difference float64) float64 {
	// standard errors in half of an interval of 30 values, and those that nine of ten values are
	// within
	const reach, power = 2.08, 1.28
	return max(0, 2*(math.Log1p(difference)-math.Log1p(Margin))*reach/(reach+power))
}

// MaxRounds is more rounds than anyone will wait for.
const MaxRounds = 1000

// RoundsNeeded returns about how many rounds narrow the interval of a row to a width, based on the number
// kept so far. The width is inversely proportional to the square root of the number of rounds. If
// there is only a range, it returns how many rounds it takes for an interval. Beyond MaxRounds it
// returns MaxRounds+1.
func RoundsNeeded(j Result, kept int, width float64) int {
	if j.Instances == 0 {
		return 0
	}
	least := float64(kept) / float64(j.Instances) * float64(MinInstances*max(1, j.BlockLength))
	if j.Range {
		return int(math.Ceil(least))
	}
	times := (math.Log(j.High) - math.Log(j.Low)) / width
	return int(math.Ceil(min(max(least, float64(kept)*times*times), MaxRounds+1)))
}
