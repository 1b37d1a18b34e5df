package main

import (
	"fmt"
	"os"

	"orrery/internal/lab/report"
	"orrery/internal/lab/stats"
)

// An outcome holds the results of tables as counts.
type outcome struct {
	tables, rounds, wrong, unwarned, apart, found int
	rows, same, called, covered, blocks           int // counts of rows without a difference
}

// look counts the conclusions of one report.
func look(r *report.Report) outcome {
	o := outcome{tables: 1, rounds: r.Kept}
	for _, t := range r.Tests {
		for _, f := range t.Figures {
			for _, c := range f.Cells {
				if c.Ratio == nil || c.Again != "" {
					continue
				}
				if t.Name == slowTest && f.Name == slowFigure && c.Setting == slowSetting {
					if c.Ratio.Verdict == stats.Differs {
						o.found = 1
					}
					continue
				}
				if before := o.wrong; o.row(c.Ratio) && before == 0 && *tell {
					fmt.Fprintf(os.Stderr, "%s: %d rounds: %s, %s, %s: %+v\n", r.Bundle.ID, r.Kept, t.Name, f.Name, c.Setting,
						*c.Ratio)
				}
			}
		}
	}
	if o.wrong > 0 && len(r.Controls) == 0 {
		o.unwarned = 1
	}
	return o
}

// row counts a row without a real difference, and reports whether its verdict is a difference.
func (o *outcome) row(x *report.Ratio) (wrong bool) {
	o.rows++
	switch x.Verdict {
	case stats.Differs, stats.Slight, stats.Fails:
		o.wrong, wrong = 1, true
	case stats.Same:
		o.same++
	}
	if x.Block > 1 {
		o.blocks++
	}
	if called(x) {
		o.called++
		if x.Low <= 1 && 1 <= x.High {
			o.covered++
		}
	}
	return wrong
}

// called reports whether an interval is called a 95 % interval.
func called(x *report.Ratio) bool { return !x.Range }

func add(all []outcome) (sum outcome) {
	for _, o := range all {
		sum.tables, sum.rounds, sum.wrong = sum.tables+o.tables, sum.rounds+o.rounds, sum.wrong+o.wrong
		sum.apart += o.apart
		sum.unwarned, sum.found, sum.rows = sum.unwarned+o.unwarned, sum.found+o.found, sum.rows+o.rows
		sum.same, sum.called, sum.covered, sum.blocks = sum.same+o.same, sum.called+o.called, sum.covered+o.covered,
			sum.blocks+o.blocks
	}
	return sum
}

func (o outcome) line(name string, per int) string {
	return fmt.Sprintf("| %s | %d | %.0f | %s | %s | %s | %s | %s | %s | %s |", name, per,
		float64(o.rounds)/float64(o.tables), share(o.wrong, o.tables),
		share(o.unwarned, o.tables), share(o.same, o.rows), share(o.called, o.rows), share(o.covered, o.called),
		share(o.blocks, o.rows), share(o.found, o.tables))
}

func share(n, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}
