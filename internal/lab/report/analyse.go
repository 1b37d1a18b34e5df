package report

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/report/trace"
	"orrery/internal/lab/stats"
	"orrery/internal/lab/test"
)

// Analyse creates the report of a bundle. It reads nothing else.
func Analyse(c *bundle.Contents) *Report {
	c = markEmulated(c)
	s := collect(c.Trials)
	r := &Report{Format: Format, Bundle: c.Manifest, Kept: s.kept, Nodes: s.instances, Facts: c.Facts}
	r.Traces, r.Round = trace.Of(c)
	r.over = trace.OverTime(c)
	markTraces(&r.Bundle, r.Traces)
	markTraces(&r.Bundle, r.Round)
	for _, p := range c.Damaged {
		r.Damaged = append(r.Damaged, p.Error())
	}
	for _, t := range c.Manifest.Tests {
		r.Tests = append(r.Tests, analyse(t, c.Manifest, s))
	}
	for _, all := range s.trials {
		r.Trials += len(all)
		r.samples = append(r.samples, all...)
		for _, t := range all {
			if t.Error != "" {
				r.Failed++
			}
		}
	}
	slices.SortFunc(r.samples, func(a, b bundle.Trial) int {
		return cmp.Or(a.Round-b.Round, a.Began.Compare(b.Began), cmp.Compare(a.Test, b.Test),
			cmp.Compare(a.Setting, b.Setting), a.Copy-b.Copy)
	})
	resummarize(r)
	judge(r)
	labelByRatios(r)
	r.Suspects = suspects(r, s)
	return r
}

// analyse returns the part of a test's analysis that does not need the whole table.
func analyse(t bundle.Test, h bundle.Manifest, s samples) *Test {
	a := &Test{Name: t.Name, Kind: t.Kind, Copies: max(t.Copies, 1), Source: t.Source,
		Failures: failures(t.Name, h.Settings, s)}
	for _, f := range t.Figures {
		row := &Figure{Name: f.Name, Unit: f.Unit, Better: f.Better}
		for _, setting := range h.Settings {
			trials := s.trials[cellKey{t.Name, setting.Name}]
			if len(trials) == 0 && setting.Missing == "" && setting.Name != experiment.Bare {
				continue // the test does not run in this setting, or has not run yet
			}
			cell := &Cell{Setting: setting.Name, Emulated: setting.Emulated, Again: repeatedSetting(setting),
				Missing: setting.Missing,
				Labels:  marks(trials, f.Name), Failed: countFailed(trials)}
			cell.Disturbed = disturbed(cell.Labels, h.Disturbed)
			var single []float64
			cell.Values, single = s.figureValues(t, f, setting.Name)
			cell.fails = s.failures(t, setting.Name)
			cell.Summary = summarize(quantity.Floats(cell.Values), s.instances, 1)
			if a.Copies > 1 {
				cell.Single = summarize(single, nil, 1)
			}
			if cell.Summary == nil && cell.Missing == "" {
				cell.Missing = emptyReason(setting.Name, a.Failures, trials)
			}
			row.Cells = append(row.Cells, cell)
		}
		a.Figures = append(a.Figures, row)
	}
	a.Curves, a.Deaths = curves(t.Name, h.Settings, s)
	return a
}

// emptyReason returns why a cell is empty although its setting exists.
func emptyReason(setting string, all []Failure, trials []bundle.Trial) string {
	for _, f := range all {
		if f.Setting == setting {
			return f.Reason
		}
	}
	if len(trials) == 0 {
		return "not measured"
	}
	if trials[len(trials)-1].Round == 0 {
		return "only the rehearsal was completed"
	}
	return "the test did not return this figure"
}

func countFailed(trials []bundle.Trial) (n int) {
	for _, t := range trials {
		if t.Error != "" {
			n++
		}
	}
	return n
}

// failures groups a test's failed trials by setting and reason.
func failures(name string, settings []bundle.Setting, s samples) (all []Failure) {
	for _, setting := range settings {
		trials := s.trials[cellKey{name, setting.Name}]
		first := len(all)
		for _, t := range trials {
			if t.Error == "" {
				continue
			}
			i := slices.IndexFunc(all[first:], func(f Failure) bool { return f.Reason == t.Error })
			if i < 0 {
				i = len(all) - first
				all = append(all, Failure{Setting: setting.Name, Of: len(trials), Reason: t.Error})
			}
			f := &all[first+i]
			f.Count++
			f.Output = t.Output
			if !slices.Contains(f.Rounds, t.Round) {
				f.Rounds = append(f.Rounds, t.Round)
			}
		}
	}
	return all
}

func summarize(x []float64, instances []int, block int) *stats.Summary {
	if s := stats.Summarize(x, instances, block); s.N > 0 {
		return &s
	}
	return nil
}

// resummarize widens the intervals of medians if values change slowly over time, by kind of test.
func resummarize(r *Report) {
	var all []stats.Series
	var cells []*Cell
	for t, f := range r.Tests.Rows() {
		for _, c := range f.Cells {
			if c.Summary != nil {
				all = append(all, stats.Series{Kind: t.Kind, Figure: t.Name + "\n" + f.Name, Values: logarithms(c.Values),
					Instances: r.Nodes})
				cells = append(cells, c)
			}
		}
	}
	for i, serial := range stats.Blocks(all) {
		if serial.BlockLength > 1 {
			cells[i].Summary = summarize(quantity.Floats(cells[i].Values), r.Nodes, serial.BlockLength)
		}
	}
}

// logarithms returns the logarithms of values, or NaN for values that are not above zero.
func logarithms(values []quantity.Number) []float64 {
	logs := quantity.Floats(values)
	for i, v := range logs {
		if logs[i] = math.Log(v); v <= 0 {
			logs[i] = math.NaN()
		}
	}
	return logs
}

// repeatedSetting returns the setting that s repeats, or "". Old bundles only repeated bare, without
// recording it.
func repeatedSetting(s bundle.Setting) string {
	if s.Name == experiment.Control {
		return experiment.Bare
	}
	return s.Again
}

// cell returns the cell of a setting, or nil.
func (f *Figure) cell(setting string) *Cell {
	for _, c := range f.Cells {
		if c.Setting == setting {
			return c
		}
	}
	return nil
}

// Rows iterates over the figures of all tests.
func (tests Table) Rows() iter.Seq2[*Test, *Figure] {
	return func(yield func(*Test, *Figure) bool) {
		for _, t := range tests {
			for _, f := range t.Figures {
				if !yield(t, f) {
					return
				}
			}
		}
	}
}

// isJudged reports whether a figure has verdicts.
func isJudged(b test.Direction) bool { return b == test.More || b == test.Less }
