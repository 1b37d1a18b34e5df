package report

import (
	"fmt"
	"slices"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/stats"
	"orrery/internal/lab/suspect"
)

// A sheet collects rows that are judged together.
type sheet struct {
	rows  []stats.Row
	cells []*Cell
	names []string
}

func (s *sheet) add(row stats.Row, cell *Cell, name string) {
	s.rows, s.cells, s.names = append(s.rows, row), append(s.cells, cell), append(s.names, name)
}

// judge sets the ratios. Those that have a verdict are one table, over which p is adjusted. The controls are another: what they say is of
// the table, not in it. Figures that are only told are judged apart, and so do not make it harder for the others to show a difference.
func judge(r *Report) {
	var table, controls sheet
	for i := range r.Tests {
		for k := range r.Tests[i].Figures {
			f := &r.Tests[i].Figures[k]
			r.lay(f, r.Tests[i].Name+", "+f.Name, &table, &controls)
		}
	}
	for i, j := range stats.Judge(table.rows) {
		if table.cells[i].Ratio = ratio(j); table.cells[i].Ratio != nil {
			table.cells[i].Ratio.Verdict = j.Verdict
		}
	}
	for i, j := range stats.Judge(controls.rows) {
		c := controls.cells[i]
		if c.Ratio = ratio(j); j.Verdict == stats.Differs {
			r.Controls = append(r.Controls, fmt.Sprintf("%s: %s against %s %s (%s)", controls.names[i], c.Setting, c.Again, quantity.Change(c.Ratio.Value),
				quantity.Between(c.Ratio.Low, c.Ratio.High)))
		}
	}
}

// lay puts the rows of a figure where they are judged.
func (r *Report) lay(f *Figure, name string, table, controls *sheet) {
	base := f.cell(experiment.Bare)
	pairs := f.pairings()
	for c := range f.Cells {
		cell := &f.Cells[c]
		once := base
		if cell.Again != "" {
			once = f.cell(cell.Again)
		}
		if once == nil || once.Summary == nil || cell == once || cell.Summary == nil {
			continue
		}
		row := stats.Row{Setting: quantity.Floats(cell.Values), Base: quantity.Floats(once.Values), Controls: pairs, Instances: r.Nodes,
			Disturbed: cell.Disturbed || once.Disturbed}
		switch {
		case cell.Again != "" && judged(f.Better):
			row.Controls = nil
			controls.add(row, cell, name)
		case judged(f.Better):
			table.add(row, cell, name)
		default:
			cell.Ratio = ratio(stats.Judge([]stats.Row{row})[0])
		}
	}
	if low, high := stats.Band(pairs, r.Nodes); low > 0 {
		f.Control = &Band{Low: quantity.Number(low), High: quantity.Number(high)}
	}
}

// pairings are the controls of a figure. One without values is still one that nothing was shown to be beyond.
func (f *Figure) pairings() (all []stats.Pairing) {
	for i := range f.Cells {
		cell := &f.Cells[i]
		if cell.Again == "" {
			continue
		}
		if once := f.cell(cell.Again); once != nil {
			all = append(all, stats.Pairing{Again: quantity.Floats(cell.Values), Once: quantity.Floats(once.Values)})
		}
	}
	return all
}

// disturbed reports whether others used the host in so many of a cell's rounds that its figure says nothing; most is the share of them, 0 the default.
func disturbed(labels []Mark, most float64) bool {
	if most == 0 {
		most = experiment.DefaultDisturbed
	}
	return slices.ContainsFunc(labels, func(m Mark) bool {
		return (m.Name == suspect.Load || m.Name == suspect.Steal) && float64(m.Count) > most*float64(m.Of)
	})
}

// ratio is nil if no round has both values above zero.
func ratio(j stats.Judged) *Ratio {
	if j.N == 0 {
		return nil
	}
	r := &Ratio{N: j.N, Instances: j.Instances, Value: quantity.Number(j.Ratio), Low: quantity.Number(j.Low), High: quantity.Number(j.High), P: quantity.Number(j.P), Adjusted: quantity.Number(j.Adjusted),
		Between: quantity.None(), Within: quantity.None(), Modes: j.Modes}
	if j.Spread.Known {
		r.Between, r.Within = quantity.Number(j.Spread.Instances), quantity.Number(j.Spread.Rounds)
	}
	if j.Block > 1 {
		r.Block = j.Block
	}
	return r
}
