package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/combin"
)

// Failures counts the instances in which a setting, and those in which bare, failed in at least
// half of their rounds. With autocorrelation it counts blocks of instances.
type Failures struct {
	Setting, Of  int
	Base, BaseOf int
	// probability of numbers that differ as much if both fail equally often (Fisher's exact test)
	P        float64
	Adjusted float64 // P after Holm's correction over all failures of the table
	key      string  // identifies the failed instances: figures of one test fail together
}

// Any reports whether the setting or bare failed.
func (f Failures) Any() bool { return f.Setting+f.Base > 0 }

// more reports whether the setting fails more often than bare, and not by chance.
func (f Failures) more() bool {
	return min(f.Of, f.BaseOf) >= MinInstances && f.Adjusted < level && f.Setting*f.BaseOf > f.Base*f.Of
}

func (row Comparison) failures(block int) Failures {
	failed := func(x []float64) (failed, of int, key string) {
		bad := make([]float64, len(x))
		for i, v := range x {
			switch {
			case math.IsNaN(v):
				bad[i] = math.NaN()
			case v == row.Worst:
				bad[i] = 1
			}
		}
		for _, rounds := range groupByInstance(bad, row.Instances).blocks(block) {
			of++
			if mean(rounds) >= 0.5 {
				failed++
				key += fmt.Sprint(" ", of)
			}
		}
		return failed, of, key
	}
	f := Failures{P: 1, Adjusted: 1}
	var key, baseKey string
	f.Setting, f.Of, key = failed(row.Setting)
	f.Base, f.BaseOf, baseKey = failed(row.Baseline)
	if f.Any() {
		f.key = row.Kind + key + "/" + baseKey
		f.P = fisher(f.Setting, f.Of, f.Base, f.BaseOf)
	}
	return f
}

// adjustFailures corrects p of failures for the number of different failures. A figure that never fails
// cannot be falsely reported as failing. Figures of one test that fail in the same instances are
// one failure.
func adjustFailures(rows []Comparison, judged []Result) {
	var p []float64
	at := map[string]int{}
	for i := range judged {
		f := &judged[i].Failures
		if _, known := at[f.key]; f.Any() && rows[i].Family == 0 && !known {
			at[f.key] = len(p)
			p = append(p, f.P)
		}
	}
	adjusted := holm(p)
	for i := range judged {
		if k, known := at[judged[i].Failures.key]; known && judged[i].Failures.Any() {
			judged[i].Failures.Adjusted = adjusted[k]
		}
	}
}

// fisher returns the two-sided p of Fisher's exact test for a of n and b of m.
func fisher(a, n, b, m int) float64 {
	if n == 0 || m == 0 {
		return 1
	}
	all := combin.LogGeneralizedBinomial(float64(n+m), float64(a+b))
	probability := func(x int) float64 {
		return math.Exp(combin.LogGeneralizedBinomial(float64(n), float64(x)) + combin.LogGeneralizedBinomial(float64(m),
			float64(a+b-x)) - all)
	}
	seen, p := probability(a), 0.0
	for x := max(0, a+b-m); x <= min(n, a+b); x++ {
		if chance := probability(x); chance <= seen*(1+1e-9) {
			p += chance
		}
	}
	return min(1, p)
}
