package main

import (
	"fmt"

	"orrery/internal/lab/report"
	"orrery/internal/lab/stats"
)

// Two runs of the same thing with ten rounds of 1 %, whose figures each have the luck of a run.
func compared() {
	fmt.Println("\n| compare | luck of a run | AR 0.9 within | false tables | called 95 % | of these cover | +10 % found |")
	fmt.Println("|---|--:|---|--:|--:|--:|--:|")
	for _, c := range []struct {
		luck       float64
		correlated bool
	}{{0, false}, {0, true}, {0.02, false}, {0.03, false}, {0.05, false}} {
		m := model{noise: normal(0.01)}
		if c.correlated {
			m.more, m.strike = ar(0.9, 0.03), every
		}
		all := make([]outcome, *tables)
		each(*tables, func(i int) {
			run := func(n uint64, slower float64) *report.Report {
				w := newWorld(m, (*seed+uint64(i))*1000+n, 1, slower)
				w.luck = c.luck
				return w.measure(*rounds, *rounds)
			}
			all[i] = lookAt(report.Compare(run(1, 1), run(2, 1.1)))
		})
		o := add(all)
		fmt.Printf("| 1 with 1 | %.0f %% | %v | %s | %s | %s | %s |\n", 100*c.luck, c.correlated, share(o.wrong, o.tables), share(o.called, o.rows),
			share(o.covered, o.called), share(o.found, o.tables))
	}
}

// lookAt counts what a comparison says.
func lookAt(c *report.Comparison) outcome {
	o := outcome{tables: 1}
	for _, row := range c.Rows {
		for _, x := range []*report.Ratio{row.Value, row.Cost} {
			if x == nil {
				continue
			}
			if row.Test == slowTest && row.Figure == slowFigure && row.Setting == slowSetting {
				if x.Verdict == stats.Differs {
					o.found = 1
				}
				continue
			}
			o.row(x)
		}
	}
	return o
}
