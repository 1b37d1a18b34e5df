package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/report/quantity"
)

// changed shows what changed, and what that means for this figure.
func (c *Compared) changed(r *Ratio) change { return changed(r, effectOf(r, c.Better)) }

// scaleFor is that of all medians of the figure in both bundles.
func (c *Comparison) scaleFor(like *Compared) quantity.Scale {
	var medians []float64
	for _, r := range c.Rows {
		if r.Test == like.Test && r.Figure == like.Figure {
			medians = append(medians, r.Before.Median, r.After.Median)
		}
	}
	return quantity.ScaleOfFigure(like.Figure, like.Unit, medians)
}

// Short is the table for a terminal: the cost in both is left out, and how it changed stays.
func (c *Comparison) Short() *grid {
	g := &grid{Head: []string{"", c.Before.ID, c.After.ID, "change  ", "95 %", "of cost  ", "95 %"}}
	for _, row := range c.Table().Rows {
		g.add(row[0], row[1], row[2], row[3]+" "+row[5], row[4], row[8]+" "+row[10], row[9])
	}
	return g
}

// Table has all rows.
func (c *Comparison) Table() *grid {
	g := &grid{Head: []string{"", c.Before.ID, c.After.ID, "change", "95 %", "", "cost before", "cost after", "change", "95 %", ""}}
	for _, r := range c.Rows {
		shown := r.shown(c.scaleFor(r))
		g.add(r.Test+", "+r.Figure+", "+r.Setting, shown.Before, shown.After, shown.Value.Change, shown.Value.Range, shown.Value.Sign,
			shown.CostBefore, shown.CostAfter, shown.Cost.Change, shown.Cost.Range, shown.Cost.Sign)
	}
	return g
}

// FactTable has the facts that differ; nil if none does.
func (c *Comparison) FactTable() *grid {
	if len(c.Facts) == 0 {
		return nil
	}
	g := &grid{Head: []string{"fact", "before", "after"}}
	for _, f := range c.Facts {
		g.add(f.Name, orNone(f.Before), orNone(f.After))
	}
	return g
}

// Names tell which is which.
func (c *Comparison) Names() []string {
	describe := func(word string, h bundle.Head) string {
		return fmt.Sprintf("%s: %s, %s, %s, %s", word, h.ID, h.Title, h.Host, h.Began.UTC().Format("2006-01-02 15:04 UTC"))
	}
	return []string{describe("before", c.Before), describe("after", c.After)}
}

// Headline counts what changed.
func (c *Comparison) Headline() string {
	counts, costs := map[Effect]int{}, map[Effect]int{}
	for _, r := range c.Rows {
		counts[r.changed(r.Value).Effect]++
		costs[r.changed(r.Cost).Effect]++
	}
	tell := func(n map[Effect]int) string {
		var parts []string
		for _, e := range []Effect{Worse, Gain, BitWorse, BitBetter, Alike, Undecided, Disturbed} {
			if n[e] > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n[e], e))
			}
		}
		if len(parts) == 0 {
			return "nothing to judge"
		}
		return strings.Join(parts, ", ")
	}
	return "Values: " + tell(counts) + ". Costs against bare: " + tell(costs) + "."
}

// JSON writes the comparison for programs.
func (c *Comparison) JSON(w io.Writer) error { return writeJSON(w, c) }

// writeJSON writes what a program, and a person, can read.
func writeJSON(w io.Writer, value any) error {
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	out.SetEscapeHTML(false)
	return out.Encode(value)
}

func orNone(text string) string { return cmp.Or(text, "none") }
