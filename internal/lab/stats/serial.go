package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// What is below serialLevel is taken for no chance; shuffles is how many orders a series is compared with.
const (
	serialLevel = 0.01
	shuffles    = 199
)

// A series is figures by instance, in the order in which they were measured.
type series []float64

// autocorrelation is that of each value with the one before it (lag 1), from -1 to 1.
func (s series) autocorrelation() float64 {
	middle := mean(s)
	square, product := 0.0, 0.0
	for i, v := range s {
		square += (v - middle) * (v - middle)
		if i > 0 {
			product += (v - middle) * (s[i-1] - middle)
		}
	}
	if square == 0 {
		return 0
	}
	return product / square
}

// serial tests whether neighbours in a table are more alike than others, and how much: a host that has slow moods gives each value
// several times, and fewer independent ones than there are. It is a permutation test, over all rows at once since one row has
// too few values to show it: in how many other orders of the instances, the same for all rows, the mean autocorrelation is as high. The
// estimate is corrected for its bias in short series (Kendall, Biometrika 41, 1954).
func serial(rows []series) (p, correlation float64) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(s series) bool { return len(s) < Enough })
	if len(rows) == 0 {
		return 1, 0
	}
	longest, corrected := 0, 0.0
	for _, s := range rows {
		n := float64(len(s))
		longest = max(longest, len(s))
		corrected += (n*s.autocorrelation() + 1) / (n - 3) / float64(len(rows))
	}
	found, as := together(rows), 1
	g := rand.New(rand.NewPCG(uint64(longest), uint64(len(rows)))) // the same table gives the same answer
	shuffled := make([]series, len(rows))
	for range shuffles {
		order := g.Perm(longest)
		for i, s := range rows {
			shuffled[i] = s.in(order, shuffled[i][:0])
		}
		if together(shuffled) >= found {
			as++
		}
	}
	return float64(as) / (shuffles + 1), min(corrected, 0.99)
}

func together(rows []series) float64 {
	sum := 0.0
	for _, s := range rows {
		sum += s.autocorrelation()
	}
	return sum / float64(len(rows))
}

// in gives the values in another order, which may be that of a longer series.
func (s series) in(order []int, into series) series {
	for _, i := range order {
		if i < len(s) {
			into = append(into, s[i])
		}
	}
	return into
}

// blockOf gives how many neighbours are worth one independent value: the blocks that are resampled in their place (Carlstein, Annals of
// Statistics 14, 1986) are as long.
func blockOf(correlation float64) int {
	if correlation <= 0 {
		return 1
	}
	return int(math.Ceil((1 + correlation) / (1 - correlation)))
}
