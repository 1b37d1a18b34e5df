package stats

import "slices"

// holm corrects p-values for their number, so that the probability that any true hypothesis is rejected stays below the level (Holm,
// Scandinavian Journal of Statistics 6, 1979): the least is multiplied by their number, the next by one less, and so on, and none may
// be less than one before it.
func holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case p[a] < p[b]:
			return -1
		case p[a] > p[b]:
			return 1
		}
		return 0
	})
	adjusted := make([]float64, len(p))
	least := 0.0
	for rank, i := range order {
		least = max(least, min(1, p[i]*float64(len(p)-rank)))
		adjusted[i] = least
	}
	return adjusted
}
