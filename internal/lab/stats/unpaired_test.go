package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestPairsCoverage: the interval of the ratio of two runs covers the true ratio in about 95 %, and
// two equal runs seldom differ.
func TestPairsCoverage(t *testing.T) {
	noise := rand.New(rand.NewPCG(4, 4))
	for _, n := range []int{6, 10, 11, 16} {
		const tables = 600
		covered, wrong := 0, 0
		for range tables {
			var before, after []float64
			for range n {
				before = append(before, 100*math.Exp(0.03*noise.NormFloat64()))
				after = append(after, 80*math.Exp(0.05*noise.NormFloat64()))
			}
			j := JudgePairs([]Pair{pairOf(before, after)})[0]
			if j.Low <= 0.8 && 0.8 <= j.High {
				covered++
			}
			for i := range after {
				after[i] = 100 * math.Exp(0.03*noise.NormFloat64())
			}
			if JudgePairs([]Pair{pairOf(before, after)})[0].Verdict == RunsDiffer {
				wrong++
			}
		}
		if share := float64(covered) / tables; share < 0.92 {
			t.Errorf("%d values: the interval covers %.3f", n, share)
		}
		if share := float64(wrong) / tables; share > 0.05 {
			t.Errorf("%d values: %.3f of equal runs differ", n, share)
		}
	}
}

// TestPairsFound: a simulated difference of 10 % is found.
func TestPairsFound(t *testing.T) {
	noise := rand.New(rand.NewPCG(5, 5))
	found := 0
	const tables = 300
	for range tables {
		var before, after []float64
		for range 12 {
			before = append(before, math.Exp(0.015*noise.NormFloat64()))
			after = append(after, 0.9*math.Exp(0.015*noise.NormFloat64()))
		}
		p := pairOf(before, after)
		p.ControlLow, p.ControlHigh = 0.98, 1.02
		if j := JudgePairs([]Pair{p})[0]; j.Verdict == RunsDiffer && j.Ratio < 1 {
			found++
		}
	}
	if found < tables*9/10 {
		t.Errorf("found %d of %d", found, tables)
	}
}

// TestPairsTurned: exchanging before and after yields the inverse.
func TestPairsTurned(t *testing.T) {
	values := rapid.SliceOfN(rapid.Float64Range(0.1, 1e9), 1, 14)
	rapid.Check(t, func(r *rapid.T) {
		p := pairOf(values.Draw(r, "before"), values.Draw(r, "after"))
		j := JudgePairs([]Pair{p})[0]
		back := JudgePairs([]Pair{{Before: p.After, After: p.Before}})[0]
		if !pairNear(j.Ratio*back.Ratio, 1) || !pairNear(j.P, back.P) || j.Low > j.Ratio*(1+1e-9) ||
			j.High < j.Ratio*(1-1e-9) {
			r.Fatalf("%+v and %+v", j, back)
		}
	})
}

func TestPairsNone(t *testing.T) {
	for _, p := range []Pair{{}, pairOf([]float64{1}, nil), {Before: []Run{{}, {}}},
		pairOf([]float64{0, -1, math.NaN()}, []float64{1})} {
		if j := JudgePairs([]Pair{p})[0]; j.N != 0 || j.Verdict != Undecided {
			t.Errorf("%+v: %+v", p, j)
		}
	}
	same := []float64{2, 2, 2, 2, 2}
	if j := JudgePairs([]Pair{pairOf(same, same)})[0]; j.Verdict != Same || j.Ratio != 1 {
		t.Errorf("equal constants: %+v", j)
	}
	if j := JudgePairs([]Pair{pairOf(same, []float64{3, 3, 3, 3, 3})})[0]; j.Verdict != RunsDiffer {
		t.Errorf("other constants: %+v", j)
	}
}

func pairNear(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(math.Abs(a), math.Abs(b)) }

// pairOf returns a pair with one run on each side.
func pairOf(before, after []float64) Pair {
	return Pair{Before: []Run{{Values: before}}, After: []Run{{Values: after}}}
}
