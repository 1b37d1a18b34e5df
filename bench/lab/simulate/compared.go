package main

import (
	"fmt"
	"strings"

	"orrery/internal/lab/report"
	"orrery/internal/lab/stats"
)

// compared compares runs of ten rounds with noise of 1 % and random luck for the figures of each
// run.
func compared() {
	fmt.Println("\n| compare | former runs | luck of a run | AR 0.9 within | false tables | differ as runs | called 95 % | of these cover | +10 % found |")
	fmt.Println("|---|--:|--:|---|--:|--:|--:|--:|--:|")
	for _, c := range []struct {
		runs, former int
		luck         float64
		correlated   bool
	}{
		{1, 0, 0, false}, {1, 0, 0, true}, {1, 0, 0.02, false}, {1, 0, 0.03, false}, {1, 0, 0.05, false},
		{1, 10, 0.02, false}, {1, 10, 0.05, false},
		{2, 0, 0.02, false}, {3, 0, 0, true}, {3, 0, 0.02, false}, {3, 0, 0.05, false}, {3, 10, 0.02, false},
		{5, 0, 0.02, false}, {5, 0, 0.03, false}, {10, 0, 0.02, false},
	} {
		m := model{name: "compare", noise: normal(0.01)}
		if !strings.Contains(m.name, *only) {
			return
		}
		if c.correlated {
			m.more, m.strike = ar(0.9, 0.03), every
		}
		all := make([]outcome, *tables)
		each(*tables, func(i int) {
			n := (*seed + uint64(i)) * 1000
			some := func(runs int, slower float64) (group []*report.Report) {
				for range runs {
					n++
					w := newWorld(m, n, 1, slower)
					w.luck = c.luck
					group = append(group, w.measure(*rounds, *rounds))
				}
				return group
			}
			all[i] = lookAt(report.Compare(some(c.runs, 1), some(c.runs, 1.1), some(c.former, 1)))
		})
		o := add(all)
		fmt.Printf("| %d with %d | %d | %.0f %% | %v | %s | %s | %s | %s | %s |\n", c.runs, c.runs, c.former, 100*c.luck,
			c.correlated, share(o.wrong, o.tables),
			share(o.apart, o.tables), share(o.called, o.rows), share(o.covered, o.called), share(o.found, o.tables))
	}
}

// lookAt counts the conclusions of a comparison.
func lookAt(c *report.Comparison) outcome {
	o := outcome{tables: 1}
	single := c.Single() // with single runs, the intervals are not called 95 %
	for _, row := range c.Rows {
		for _, x := range []*report.Ratio{row.Value, row.Cost} {
			if x == nil {
				continue
			}
			if row.Test == slowTest && row.Figure == slowFigure && row.Setting == slowSetting {
				if x.Verdict == stats.Differs || x.Verdict == stats.RunsDiffer {
					o.found = 1
				}
				continue
			}
			o.row(x)
			if single && called(x) {
				o.called--
				if x.Low <= 1 && 1 <= x.High {
					o.covered--
				}
			}
			if x.Verdict == stats.RunsDiffer {
				o.apart = 1
			}
		}
	}
	return o
}
