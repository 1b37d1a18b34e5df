package stats

import "math"

// WidthFor is how wide an interval of the logarithm of a ratio may be for a difference of so much to be found in nine of
// ten runs: that the interval then lies wholly outside of Margin. It is half of a width away from the figure, which is
// itself off by a standard error. 0: the difference is within Margin, and never found.
func WidthFor(difference float64) float64 {
	const reach, power = 2.08, 1.28 // standard errors in half of an interval of 30 values, and those that nine of ten are within
	return max(0, 2*(math.Log1p(difference)-math.Log1p(Margin))*reach/(reach+power))
}
