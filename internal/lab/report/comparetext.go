package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/text/humanize"
)

// changed returns the display of a ratio, with its effect for this figure.
func (c *Compared) changed(r *Ratio) change { return changed(r, effectOf(r, c.Better)) }

// scaleFor returns the scale of all medians of the figure on both sides.
func (c *Comparison) scaleFor(like *Compared) quantity.Scale {
	var medians []float64
	for _, r := range c.Rows {
		if r.Test == like.Test && r.Figure == like.Figure {
			medians = append(medians, r.Before.Median, r.After.Median)
		}
	}
	return quantity.ScaleOfFigure(like.Figure, like.Unit, medians)
}

// Short returns the table for a terminal. It omits the costs of both sides, but shows how the cost
// changed.
func (c *Comparison) Short() *grid {
	before, after := c.valueHeadings()
	g := &grid{Head: []string{"", before, after, "change  ", c.Interval(), "of cost  ", c.Interval()}}
	for _, row := range c.Table().Rows {
		g.add(row[0], row[1], row[2], row[3]+" "+row[5], row[4], row[8]+" "+row[10], row[9])
	}
	return g
}

// Table returns the table with all rows and columns.
func (c *Comparison) Table() *grid {
	before, after := c.valueHeadings()
	g := &grid{Head: []string{"", before, after, "change", c.Interval(), "", "cost before", "cost after", "change",
		c.Interval(), ""}}
	for _, r := range c.Rows {
		shown := r.newRow(c.scaleFor(r))
		g.add(r.Test+", "+r.Figure+", "+r.Setting, shown.Before, shown.After, shown.Value.Change, shown.Value.Range,
			shown.Value.Sign,
			shown.CostBefore, shown.CostAfter, shown.Cost.Change, shown.Cost.Range, shown.Cost.Sign)
	}
	return g
}

// Single reports whether each side has one run only, so that only the difference of these two is
// known.
func (c *Comparison) Single() bool { return len(c.Befores) == 1 && len(c.Afters) == 1 }

// Interval returns the heading of the column of intervals. The interval of two single runs does not
// cover the effect of a change.
func (c *Comparison) Interval() string {
	if c.Single() {
		return "of these runs"
	}
	return "95 %"
}

// valueHeadings returns the headings of the columns of values.
func (c *Comparison) valueHeadings() (before, after string) {
	name := func(ids []string, word string) string {
		if len(ids) == 1 {
			return ids[0]
		}
		return fmt.Sprintf("%s, %d runs", word, len(ids))
	}
	return name(c.Befores, "before"), name(c.Afters, "after")
}

// FactTable returns the facts that differ, or nil if there are none.
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

// Names returns descriptions of the two sides.
func (c *Comparison) Names() []string {
	describe := func(word string, h bundle.Manifest, ids []string) string {
		return fmt.Sprintf("%s: %s, %s, %s, %s", word, strings.Join(ids, " "), h.Title, h.Host,
			h.Began.UTC().Format("2006-01-02 15:04 UTC"))
	}
	names := []string{describe("before", c.Before, c.Befores), describe("after", c.After, c.Afters)}
	if c.Former > 0 {
		names = append(names, fmt.Sprintf("%s of this experiment on this host show how much runs differ without a change",
			humanize.Plural(c.Former, "former run")))
	}
	return names
}

// pluralEffects holds the words for effects of several figures that differ from those of one figure.
var pluralEffects = map[Effect]string{RunsDiffer: "differ between these two runs",
	RunsDifferAsUsual: "differ as former runs did"}

// Headline returns how many figures changed.
func (c *Comparison) Headline() string {
	counts, costs := map[Effect]int{}, map[Effect]int{}
	for _, r := range c.Rows {
		counts[r.changed(r.Value).Effect]++
		costs[r.changed(r.Cost).Effect]++
	}
	tell := func(n map[Effect]int) string {
		var parts []string
		for _, e := range []Effect{Worse, Better, SlightlyWorse, SlightlyBetter, RunsDiffer, RunsDifferAsUsual, Same,
			Undecided, Disturbed} {
			if n[e] > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n[e], cmp.Or(pluralEffects[e], string(e))))
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

// writeJSON writes indented JSON.
func writeJSON(w io.Writer, value any) error {
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	out.SetEscapeHTML(false)
	return out.Encode(value)
}

func orNone(text string) string { return cmp.Or(text, "none") }
