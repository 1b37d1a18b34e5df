package report

import (
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/stats"
)

// judge sets the ratios to bare. Those that have a verdict are one table, over which p is adjusted; the control and figures that are only
// told have none, and so do not make it harder for the others to show a difference.
func judge(r *Report) {
	var rows []stats.Row
	var cells []*Cell
	for i := range r.Tests {
		for k := range r.Tests[i].Figures {
			f := &r.Tests[i].Figures[k]
			base, control := f.cell(experiment.Bare), f.cell(experiment.Control)
			if base == nil || base.Summary == nil {
				continue
			}
			f.Control = compare(base, control, control, r.Bundle.Seed)
			for c := range f.Cells {
				cell := &f.Cells[c]
				switch {
				case cell == base || cell == control || cell.Summary == nil:
				case judged(f.Better):
					rows = append(rows, row(cell, base, control))
					cells = append(cells, cell)
				default:
					compare(base, cell, control, r.Bundle.Seed)
				}
			}
		}
	}
	if len(rows) == 0 {
		return
	}
	for i, j := range stats.Judge(rows, r.Bundle.Seed) {
		if cells[i].Ratio = ratio(j); cells[i].Ratio != nil {
			cells[i].Ratio.Verdict = j.Verdict
		}
	}
}

// compare sets the ratio of a cell that has no verdict, and gives the band of the control.
func compare(base, cell, control *Cell, seed uint64) *Band {
	if cell == nil || cell.Summary == nil {
		return nil
	}
	j := stats.Judge([]stats.Row{row(cell, base, control)}, seed)[0]
	cell.Ratio = ratio(j)
	if j.ControlLow == 0 { // no round has both
		return nil
	}
	return &Band{Low: Number(j.ControlLow), High: Number(j.ControlHigh)}
}

// row is what is compared. A control without values is still one that nothing was shown to be beyond; without one, there is nothing to show.
func row(cell, base, control *Cell) stats.Row {
	r := stats.Row{Setting: floats(cell.Values), Base: floats(base.Values)}
	if control != nil {
		r.Control = floats(control.Values)
	}
	return r
}

// ratio is nil if no round has both values above zero.
func ratio(j stats.Judged) *Ratio {
	if j.N == 0 {
		return nil
	}
	return &Ratio{N: j.N, Value: Number(j.Ratio), Low: Number(j.Low), High: Number(j.High), P: Number(j.P), Adjusted: Number(j.Adjusted)}
}
