package stats

import (
	"math/rand/v2"
	"slices"
)

// Order returns the order of n settings in a round.
//
// Rounds come in pairs, ABBA: each odd round is the reverse of the round before, so that a steady
// rise or fall over the two rounds affects every setting equally. The seed determines the order of
// even rounds, but not freely: n pairs are a block in which each setting is first in one pair and
// last in one pair. So over the 2n rounds of a block every setting is exactly twice first, and
// exactly twice last.
func Order(n, round int, seed uint64) []int {
	if n <= 0 {
		return []int{}
	}
	pair := max(round, 0) / 2
	block, at := pair/n, pair%n
	turns := rand.New(rand.NewPCG(seed, uint64(block))).Perm(n)
	first, last := turns[at], turns[(at+1)%n]

	order := make([]int, 0, n)
	order = append(order, first)
	for _, i := range rand.New(rand.NewPCG(^seed, uint64(pair))).Perm(n) {
		if i != first && i != last {
			order = append(order, i)
		}
	}
	if last != first {
		order = append(order, last)
	}
	if round%2 == 1 {
		slices.Reverse(order)
	}
	return order
}
