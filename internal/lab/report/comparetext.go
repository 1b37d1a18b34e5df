package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/stats"
	"orrery/internal/lab/test"
)

// effect is what a change means for this figure.
func (c Compared) effect(r *Ratio) Effect {
	switch {
	case r == nil:
		return Nothing
	case !judged(c.Better):
		return Told
	case r.Verdict == stats.Unmeasurable:
		return Disturbed
	case r.Verdict == stats.Same:
		return Alike
	case r.Verdict != stats.Differs:
		return Undecided
	case (r.Value > 1) == (c.Better == test.More):
		return Gain
	}
	return Worse
}

// scaleFor is that of all medians of the figure in both bundles.
func scaleFor(rows []Compared, like Compared) quantity.Scale {
	var medians []float64
	for _, r := range rows {
		if r.Test == like.Test && r.Figure == like.Figure {
			medians = append(medians, float64(r.Before.Median), float64(r.After.Median))
		}
	}
	return quantity.ScaleOfFigure(like.Figure, like.Unit, medians)
}

// short is the table for a terminal: the cost in both is left out, and how it changed stays.
func (c *Comparison) short() *grid {
	whole := c.table()
	g := &grid{head: []string{"", c.Before.ID, c.After.ID, "change  ", "95 %", "of cost  ", "95 %"}}
	for _, row := range whole.rows {
		g.add(row[0], row[1], row[2], row[3]+" "+row[5], row[4], row[8]+" "+row[10], row[9])
	}
	return g
}

// table has all rows.
func (c *Comparison) table() *grid {
	g := &grid{head: []string{"", c.Before.ID, c.After.ID, "change", "95 %", "", "cost before", "cost after", "change", "95 %", ""}}
	for _, r := range c.Rows {
		s := scaleFor(c.Rows, r)
		row := []string{r.Test + ", " + r.Figure + ", " + r.Setting, s.Value(r.Before.Median), s.Value(r.After.Median)}
		row = append(row, r.changed(r.Value)...)
		if r.Setting == experiment.Bare {
			row = append(row, "", "", "", "", "")
		} else {
			row = append(append(row, quantity.Change(r.CostBefore), quantity.Change(r.CostAfter)), r.changed(r.Cost)...)
		}
		g.add(row...)
	}
	return g
}

// changed is a change, its interval and its sign.
func (c Compared) changed(r *Ratio) []string {
	if r == nil {
		return []string{"–", "", ""}
	}
	return []string{quantity.Change(r.Value), quantity.Between(r.Low, r.High), c.effect(r).sign()}
}

const compareLegend = "Change: after against before, with its 95 % interval: = same within ±5 %, ▼ worse, ▲ better, ? undecided, ≈ not measurable now. Cost: against bare in the same run. " +
	"Rounds of two runs are not paired, so what changed in the room or on the host between them is in the change of values, but hardly in that of costs."

// names tell which is which.
func (c *Comparison) names() []string {
	return []string{"before: " + describe(c.Before.ID, c.Before.Title, c.Before.Host, c.Before.Began.UTC().Format("2006-01-02 15:04 UTC")),
		"after: " + describe(c.After.ID, c.After.Title, c.After.Host, c.After.Began.UTC().Format("2006-01-02 15:04 UTC"))}
}

func describe(id, title, host, when string) string {
	return fmt.Sprintf("%s, %s, %s, %s", id, title, host, when)
}

// Text writes the comparison for a terminal.
func (c *Comparison) Text(w io.Writer) {
	for _, n := range c.names() {
		fmt.Fprintln(w, n)
	}
	for _, n := range c.Notes {
		fmt.Fprintln(w, n)
	}
	fmt.Fprintln(w, c.headline())
	fmt.Fprintln(w)
	c.short().plain(w)
	fmt.Fprintln(w, "\n"+compareLegend)
	for _, o := range c.Only {
		fmt.Fprintln(w, o)
	}
	if len(c.Facts) > 0 {
		fmt.Fprintln(w, "\nWhat else differs:")
	}
	for _, f := range c.Facts {
		fmt.Fprintf(w, "  %s: %s → %s\n", f.Name, orNone(f.Before), orNone(f.After))
	}
}

// Markdown writes the comparison as Markdown.
func (c *Comparison) Markdown(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s and %s\n\n", marked.Replace(c.Before.ID), marked.Replace(c.After.ID))
	for _, n := range append(c.names(), c.Notes...) {
		fmt.Fprintf(&b, "* %s\n", marked.Replace(n))
	}
	fmt.Fprintf(&b, "\n%s\n\n", c.headline())
	c.table().markdown(&b)
	fmt.Fprintf(&b, "\n%s\n", compareLegend)
	if len(c.Only) > 0 {
		fmt.Fprintln(&b, "\n## Only in one")
		fmt.Fprintln(&b)
	}
	for _, o := range c.Only {
		fmt.Fprintf(&b, "* %s\n", marked.Replace(o))
	}
	fmt.Fprintln(&b, "\n## What else differs")
	fmt.Fprintln(&b)
	if len(c.Facts) == 0 {
		fmt.Fprintln(&b, "Nothing that was recorded of the hosts.")
	} else {
		g := &grid{head: []string{"fact", "before", "after"}}
		for _, f := range c.Facts {
			g.add(f.Name, orNone(f.Before), orNone(f.After))
		}
		g.markdown(&b)
	}
	_, err := b.WriteTo(w)
	return err
}

// JSON writes the comparison for programs.
func (c *Comparison) JSON(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	out.SetEscapeHTML(false)
	return out.Encode(c)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
