package stats

import "math"

// WidthFor is how wide an interval of the logarithm of a ratio may be for a difference of so much
// to be found in nine of ten runs: that the interval then lies wholly outside of Margin. It is half
// of a width away from the figure, which is itself off by a standard error. 0: the difference is
// within Margin, and never found.
func WidthFor(difference float64) float64 {
	// standard errors in half of an interval of 30 values, and those that nine of ten are within
	const reach, power = 2.08, 1.28
	return max(0, 2*(math.Log1p(difference)-math.Log1p(Margin))*reach/(reach+power))
}

// MaxNeeded is more rounds than anybody will wait for.
const MaxNeeded = 1000

// Needed is about how many rounds narrow the interval of a row to a width, if so many were kept:
// intervals narrow with the square root of their number. Where there is a range, it is how many it
// takes for an interval. Beyond MaxNeeded it is one more.
func Needed(j Judged, kept int, width float64) int {
	if j.Instances == 0 {
		return 0
	}
	least := float64(kept) / float64(j.Instances) * float64(Enough*max(1, j.Block))
	if j.Range {
		return int(math.Ceil(least))
	}
	times := (math.Log(j.High) - math.Log(j.Low)) / width
	return int(math.Ceil(min(max(least, float64(kept)*times*times), MaxNeeded+1)))
}
