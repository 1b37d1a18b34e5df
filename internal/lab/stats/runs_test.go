package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"orrery/test/need"
)

// luckyRuns returns runs of ten rounds with noise of 1 % and a random factor for each run.
func luckyRuns(g *rand.Rand, n int, factor, luck float64) (runs []Run) {
	for range n {
		own := factor * lognormal(g, luck)
		run := Run{}
		for range 10 {
			run.Values = append(run.Values, own*lognormal(g, 0.01))
		}
		runs = append(runs, run)
	}
	return runs
}

// TestRuns: if two runs differ by luck, the verdict is about the runs and not about a change.
// Several runs on each side do not differ more often than permitted, their intervals cover the true
// value, and five find 10 %.
func TestRuns(t *testing.T) {
	g := rand.New(rand.NewPCG(31, 31))
	const rows = 20
	tables := need.Times(20, 100)
	for _, c := range []struct{ runs, former int }{{1, 0}, {1, 10}, {3, 0}, {3, 10}, {5, 0}} {
		wrong, apart, covered, all, found := 0, 0, 0, 0, 0
		for range tables {
			pairs := make([]Pair, rows)
			for i := range pairs {
				factor := 1.0
				if i == 0 {
					factor = 1.15
				}
				pairs[i] = Pair{Kind: "micro", Before: luckyRuns(g, c.runs, 1, 0.02), After: luckyRuns(g, c.runs, factor, 0.02),
					Former: luckyRuns(g, c.former, 1, 0.02)}
			}
			falsely := false
			for i, j := range JudgePairs(pairs) {
				switch {
				case i == 0 && j.Verdict == Differs:
					found++
				case i > 0:
					falsely = falsely || j.Verdict == Differs || j.Verdict == Slight
					if j.Verdict == RunsDiffer {
						apart++
					}
					if all++; j.Low <= 1 && 1 <= j.High {
						covered++
					}
				}
			}
			if falsely {
				wrong++
			}
		}
		cover := float64(covered) / float64(all)
		t.Logf("%d with %d runs, %d former: %d of %d tables false, %d rows differ as runs, intervals cover %.3f, 15 %% found in %d",
			c.runs, c.runs, c.former, wrong, tables, apart, cover, found)
		if wrong > max(1, tables/20) {
			t.Errorf("%d runs: %d of %d tables are false", c.runs, wrong, tables)
		}
		switch {
		case c.runs == 1 && found > 0:
			t.Errorf("one run on each side: a setting is said to differ %d times", found)
		case c.runs == 1 && c.former == 0 && apart == 0:
			t.Error("no two runs differ, whatever their luck")
		case c.runs > 1 && cover < 0.93:
			t.Errorf("%d runs: intervals cover %.3f", c.runs, cover)
		case c.runs == 3 && c.former > 0 && found < tables*8/10:
			t.Errorf("15 %% is found in %d of %d tables", found, tables)
		}
	}
}

// TestFewRuns: fewer than five runs in all have a range, and decide nothing.
func TestFewRuns(t *testing.T) {
	g := rand.New(rand.NewPCG(32, 32))
	pair := Pair{Before: luckyRuns(g, 2, 1, 0.01), After: luckyRuns(g, 2, 2, 0.01)}
	if j := JudgePairs([]Pair{pair})[0]; !j.Range || j.Verdict != Undecided || j.Low >= j.High {
		t.Errorf("%+v", j)
	}
	pair.After = luckyRuns(g, 3, 2, 0.01)
	if j := JudgePairs([]Pair{pair})[0]; j.Range || math.Abs(j.Ratio-2) > 0.1 {
		t.Errorf("%+v", j)
	}
}
