package report

import (
	"cmp"
	"fmt"
	"slices"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/stats"
	"orrery/internal/lab/suspect"
	"orrery/internal/lab/test"
)

// A sheet collects rows that are judged together, with where the ratio of each goes.
type sheet[R any] struct {
	judge func([]R) []stats.Judged
	rows  []R
	into  []**Ratio
}

// add takes a row. Figures that are only told are judged apart and have no verdict: they do not make it harder for the others to show a difference.
func (s *sheet[R]) add(row R, better test.Better, into **Ratio) {
	if !judged(better) {
		*into = ratio(s.judge([]R{row})[0])
		return
	}
	s.rows, s.into = append(s.rows, row), append(s.into, into)
}

// fill sets the ratios of all rows, with their verdicts.
func (s *sheet[R]) fill() {
	for i, j := range s.judge(s.rows) {
		if r := ratio(j); r != nil {
			r.Verdict = j.Verdict
			*s.into[i] = r
		}
	}
}

// judge sets the ratios. Those that have a verdict are one table, over which p is adjusted. The controls are another: what they say is of
// the table, not in it.
func judge(r *Report) {
	table, controls := sheet[stats.Row]{judge: stats.Judge}, sheet[stats.Row]{judge: stats.Judge}
	for _, f := range r.figures() {
		r.lay(f, &table, &controls)
	}
	table.fill()
	controls.fill()
	for t, f := range r.figures() {
		for _, c := range f.Cells {
			if c.Again == "" || c.Ratio == nil {
				continue
			}
			if c.Ratio.Verdict == stats.Differs {
				r.Controls = append(r.Controls, fmt.Sprintf("%s, %s: %s against %s %s (%s)", t.Name, f.Name, c.Setting, c.Again, quantity.Change(c.Ratio.Value),
					quantity.Between(c.Ratio.Low, c.Ratio.High)))
			}
			c.Ratio.Verdict = ""
		}
	}
}

// lay puts the rows of a figure where they are judged.
func (r *Report) lay(f *Figure, table, controls *sheet[stats.Row]) {
	pairs := f.pairings()
	for _, cell := range f.Cells {
		once := f.once(cell)
		if once == nil || once.Summary == nil || cell == once || cell.Summary == nil {
			continue
		}
		row := stats.Row{Setting: quantity.Floats(cell.Values), Base: quantity.Floats(once.Values), Controls: pairs, Instances: r.Nodes,
			Disturbed: cell.Disturbed || once.Disturbed}
		if cell.Again == "" {
			table.add(row, f.Better, &cell.Ratio)
			continue
		}
		row.Controls = nil
		controls.add(row, f.Better, &cell.Ratio)
	}
	if low, high := stats.Band(pairs, r.Nodes); low > 0 {
		f.Control = &Band{Low: low, High: high}
	}
}

// once is the cell that another is compared with: bare's, or that of the setting which it is once more.
func (f *Figure) once(c *Cell) *Cell { return f.cell(cmp.Or(c.Again, experiment.Bare)) }

// pairings are the controls of a figure. One without values is still one that nothing was shown to be beyond.
func (f *Figure) pairings() (all []stats.Pairing) {
	for _, cell := range f.Cells {
		if once := f.once(cell); cell.Again != "" && once != nil {
			all = append(all, stats.Pairing{Again: quantity.Floats(cell.Values), Once: quantity.Floats(once.Values)})
		}
	}
	return all
}

// disturbed reports whether others used the host in so many of a cell's rounds that its figure says nothing; most is the share of them, 0 the default.
func disturbed(labels []Mark, most float64) bool {
	most = cmp.Or(most, experiment.DefaultDisturbed)
	return slices.ContainsFunc(labels, func(m Mark) bool {
		return (m.Name == suspect.Load || m.Name == suspect.Steal) && float64(m.Count) > most*float64(m.Of)
	})
}

// ratio is nil if no round has both values above zero.
func ratio(j stats.Judged) *Ratio {
	if j.N == 0 {
		return nil
	}
	r := &Ratio{N: j.N, Instances: j.Instances, Value: j.Ratio, Low: j.Low, High: j.High, P: j.P, Adjusted: j.Adjusted,
		Between: quantity.None(), Within: quantity.None(), Modes: j.Modes}
	if j.Spread.Known {
		r.Between, r.Within = quantity.Number(j.Spread.Instances), quantity.Number(j.Spread.Rounds)
	}
	if j.Block > 1 {
		r.Block = j.Block
	}
	return r
}
