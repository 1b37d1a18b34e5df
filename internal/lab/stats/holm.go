package stats

import (
	"cmp"
	"slices"
)

// holm corrects p-values for their number, so that the probability of rejecting any true hypothesis
// stays below the level (Holm, Scandinavian Journal of Statistics 6, 1979). It multiplies the
// lowest p-value by their number, the next by one less, and so on. No result may be lower than one
// before it.
func holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	adjusted := make([]float64, len(p))
	least := 0.0
	for rank, i := range order {
		least = max(least, min(1, p[i]*float64(len(p)-rank)))
		adjusted[i] = least
	}
	return adjusted
}

// adjust corrects p of the decidable rows within their families.
func adjust(judged []Result, family func(i int) int) {
	tested := map[int][]int{}
	for i := range judged {
		if judged[i].decidable() {
			tested[family(i)] = append(tested[family(i)], i)
		}
	}
	for _, rows := range tested {
		p := make([]float64, len(rows))
		for k, i := range rows {
			p[k] = judged[i].P
		}
		for k, adjusted := range holm(p) {
			judged[rows[k]].Adjusted = adjusted
		}
	}
}
