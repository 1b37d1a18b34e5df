package stats

import (
	"math"
	"slices"
	"sort"
)

// isBimodal reports whether values are bimodal with nothing in between. This happens if a condition
// changes between two states: a buffer that is aligned or not, a flow that hashes to one queue or
// another.
//
// The values are split where the variance within the two parts is lowest (Engelman and Hartigan,
// "Percentage points of a test for clusters", JASA 64, 1969). Each part must have at least a fifth
// of them, so that outliers do not count. The remaining share of the variance within the parts is
// compared with that of values without modes. The worst of these is the uniform distribution
// (Hartigan and Hartigan, "The dip test of unimodality", Annals of Statistics 13, 1985). In one of
// a hundred of its samples, the share is below maxWithin.
func isBimodal(x []float64) bool {
	x = slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(x), func(v float64) bool { return !finite(v) })))
	least := max(2, (len(x)+4)/5)
	if len(x) < minForModes {
		return false
	}
	all := squares(x)
	if all == 0 {
		return false
	}
	within := math.Inf(1)
	for i := least; i <= len(x)-least; i++ {
		within = min(within, squares(x[:i])+squares(x[i:]))
	}
	return within/all < maxWithin(len(x))
}

// minForModes is the minimum number of values for a decision.
const minForModes = 8

// squares returns the sum of squared distances from the mean.
func squares(x []float64) float64 {
	middle, sum := mean(x), 0.0
	for _, v := range x {
		sum += (v - middle) * (v - middle)
	}
	return sum
}

// bimodalBounds holds the bound for numbers of values, from simulations of 100 000 samples each up to
// 30, and of 10 000 beyond.
var bimodalBounds = []struct {
	n      int
	within float64
}{{8, 0.0379}, {10, 0.0576}, {12, 0.0712}, {15, 0.0889}, {20, 0.1102}, {30, 0.1347}, {50, 0.1560}, {100, 0.1848},
	{300, 0.2127}}

func maxWithin(n int) float64 {
	i := sort.Search(len(bimodalBounds), func(i int) bool { return bimodalBounds[i].n >= n })
	switch {
	case i == len(bimodalBounds):
		return bimodalBounds[i-1].within
	case i == 0 || bimodalBounds[i].n == n:
		return bimodalBounds[i].within
	}
	a, b := bimodalBounds[i-1], bimodalBounds[i]
	return a.within + (b.within-a.within)*float64(n-a.n)/float64(b.n-a.n)
}
