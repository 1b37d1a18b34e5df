package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/quantity"
)

// Markdown writes report.md.
func (r *Report) Markdown(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n%s\n", marked.Replace(r.title()), marked.Replace(r.circumstances()))
	if r.Bundle.Source != "" {
		fmt.Fprintf(&b, "\nAfter %s.\n", marked.Replace(r.Bundle.Source))
	}
	for _, warning := range r.warnings() {
		fmt.Fprintf(&b, "\n**%s**\n", marked.Replace(warning))
	}
	fmt.Fprintln(&b, "\n## The answer")
	fmt.Fprintln(&b)
	for _, a := range r.Answers() {
		fmt.Fprintf(&b, "* **%s** (%s) %s %s\n", marked.Replace(a.Setting), marked.Replace(a.About), marked.Replace(a.Headline()), marked.Replace(a.Rest()))
	}
	for _, s := range r.absent() {
		fmt.Fprintf(&b, "* **%s** (%s) is missing: %s\n", marked.Replace(s.Name), marked.Replace(s.About), marked.Replace(s.Missing))
	}
	fmt.Fprintln(&b)
	r.answer().markdown(&b)
	fmt.Fprintln(&b, "\n"+legend)
	for i := range r.Tests {
		r.test(&b, &r.Tests[i])
	}
	r.suspect(&b)
	r.damage(&b)
	fmt.Fprintf(&b, "\n## How to reproduce\n\n```\n%s\n```\n\n%s\n", strings.Join(r.reproduce(), "\n"), method)
	_, err := b.WriteTo(w)
	return err
}

// test writes the numbers of a test: a table for each figure.
func (r *Report) test(w io.Writer, t *Test) {
	fmt.Fprintf(w, "\n## %s\n", marked.Replace(t.Name))
	if t.Source != "" {
		fmt.Fprintf(w, "\nAfter %s.\n", marked.Replace(t.Source))
	}
	if t.paper() {
		fmt.Fprintln(w)
		t.asPaper().markdown(w)
	}
	for k := range t.Figures {
		f := &t.Figures[k]
		s := f.scale()
		fmt.Fprintf(w, "\n**%s** (%s), A/A %s\n\n", marked.Replace(f.Name), f.way(), aa(f.Control))
		g := &grid{head: []string{"setting", unitHead("median", s), "95 %", "n", "% of bare", "change", "95 %", "instances, rounds add", "verdict", "suspect"}}
		for c := range f.Cells {
			if f.Cells[c].absent() {
				continue
			}
			g.add(r.numbers(f, &f.Cells[c], s)...)
		}
		g.markdown(w)
	}
	if g := t.singles(); g != nil {
		fmt.Fprintln(w)
		g.markdown(w)
	}
	for _, f := range t.Failures {
		fmt.Fprintf(w, "\n%s failed in %s, %d of %d trials: %s\n", marked.Replace(t.Name), marked.Replace(f.Setting), f.Count, f.Of, marked.Replace(f.Reason))
		if f.Output != "" {
			fmt.Fprintf(w, "\n    %s\n", strings.ReplaceAll(strings.TrimSpace(f.Output), "\n", "\n    "))
		}
	}
	for _, d := range t.Deaths {
		fmt.Fprintf(w, "\nWhere packets died, %s: %s.\n", marked.Replace(d.Setting), d.words())
	}
}

func unitHead(name string, s quantity.Scale) string {
	if s.Unit == "" {
		return name
	}
	return name + ", " + s.Unit
}

// numbers is the row of a cell.
func (r *Report) numbers(f *Figure, c *Cell, s quantity.Scale) []string {
	if c.Summary == nil {
		return []string{c.Setting, "–", "", "", "", "", "", "", firstLine(c.Missing), ""}
	}
	row := []string{c.Setting, s.Number(c.Summary.Median), s.Number(c.Summary.Low) + " to " + s.Number(c.Summary.High), fmt.Sprint(c.Summary.N),
		"", "", "", "", string(f.Effect(c)), strings.Join(c.suspect(), ", ")}
	if c.Setting == experiment.Bare {
		row[4] = "100"
	} else if c.Ratio != nil {
		row[4], row[5], row[6], row[7] = quantity.Percent(float64(c.Ratio.Value)), quantity.Change(c.Ratio.Value), quantity.Between(c.Ratio.Low, c.Ratio.High), c.Ratio.spread()
	}
	return row
}

// spread tells what instances and what rounds add to the spread of a ratio.
func (x *Ratio) spread() string {
	if !x.Between.Is() || !x.Within.Is() {
		return "–"
	}
	return quantity.Percent(float64(x.Between)) + ", " + quantity.Percent(float64(x.Within)) + " %"
}

// suspect names the labels of a cell, with how many of its trials bear them where it is not all.
func (c *Cell) suspect() (all []string) {
	for _, m := range c.Labels {
		text := m.Name
		if m.Count < m.Of {
			text += fmt.Sprintf(" %d/%d", m.Count, m.Of)
		}
		all = append(all, text)
	}
	return all
}

func (r *Report) suspect(w io.Writer) {
	if len(r.Suspects) == 0 {
		return
	}
	fmt.Fprintln(w, "\n## Suspect")
	fmt.Fprintln(w)
	for i, s := range r.Suspects {
		fmt.Fprintf(w, "%d. **%s**, %s: %s. Cure: %s\n", i+1, marked.Replace(s.Name), s.extent(), marked.Replace(strings.Join(s.Why, "; ")), marked.Replace(s.Cure))
		for _, where := range s.Where {
			fmt.Fprintf(w, "   * %s\n", marked.Replace(where))
		}
	}
}

func (r *Report) damage(w io.Writer) {
	if len(r.Damaged) == 0 {
		return
	}
	fmt.Fprintln(w, "\n## Damaged")
	fmt.Fprintln(w)
	for _, d := range r.Damaged {
		fmt.Fprintf(w, "* %s\n", marked.Replace(d))
	}
}
