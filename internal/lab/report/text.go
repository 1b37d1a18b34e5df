package report

import (
	"fmt"
	"io"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/quantity"
)

// Text writes the answer for a terminal.
func (r *Report) Text(w io.Writer) {
	fmt.Fprintf(w, "%s\n%s\n\n", r.title(), r.circumstances())
	g := r.answer()
	g.plain(w)
	fmt.Fprintln(w, "\n"+legend)
	fmt.Fprintln(w)
	for _, a := range r.Answers() {
		fmt.Fprintf(w, "%s %s %s\n", a.Setting, a.Headline(), a.Rest())
	}
	for _, s := range r.absent() {
		fmt.Fprintf(w, "%s is missing: %s\n", s.Name, s.Missing)
	}
	for _, t := range r.Tests {
		for _, f := range t.Failures {
			fmt.Fprintf(w, "%s failed in %s, %d of %d: %s\n", t.Name, f.Setting, f.Count, f.Of, firstLine(f.Reason))
		}
	}
	if len(r.Suspects) > 0 {
		fmt.Fprintln(w, "\nSuspect:")
	}
	for i, s := range r.Suspects {
		fmt.Fprintf(w, "  [%d] %s, %s: %s\n      %s\n", i+1, s.Name, s.extent(), first(s.Why), s.Cure)
	}
	for _, warning := range r.warnings() {
		fmt.Fprintln(w, "\n"+warning)
	}
}

const legend = "Against bare: = same within ±5 %, ▼ worse, ▲ better, ? undecided, ≈ not measurable now: others used the host. A/A: the same against the same, bare and a container, in the same rounds."

// answer is the table of all figures: bare, then how each setting differs from it.
func (r *Report) answer() *grid {
	names := r.columns()
	g := &grid{head: []string{"", "bare"}}
	for _, name := range names {
		if name != experiment.Bare {
			g.head = append(g.head, name)
		}
	}
	g.head = append(g.head, "A/A")
	for i := range r.Tests {
		t := &r.Tests[i]
		for k := range t.Figures {
			f := &t.Figures[k]
			row := []string{t.Name + ", " + f.Name, "–"}
			s := f.scale()
			if c := f.cell(experiment.Bare); c != nil && c.Summary != nil {
				row[1] = s.Value(c.Summary.Median) + r.notes(c)
			}
			for _, name := range g.head[2 : len(g.head)-1] {
				row = append(row, r.brief(f, f.cell(name), s))
			}
			g.add(append(row, aa(f.Control))...)
		}
	}
	return g
}

// brief is a cell in a few characters.
func (r *Report) brief(f *Figure, c *Cell, s quantity.Scale) string {
	switch {
	case c == nil:
		return ""
	case c.Summary == nil && c.Failed > 0:
		return "failed"
	case c.Summary == nil:
		return "none"
	case c.Ratio == nil:
		return s.Value(c.Summary.Median) + r.notes(c)
	}
	text := quantity.Change(c.Ratio.Value)
	if f.Effect(c) == Disturbed {
		return Disturbed.sign() + r.notes(c) // the number would be taken for one
	}
	if sign := f.Effect(c).sign(); sign != "" {
		text += " " + sign
	}
	return text + r.notes(c)
}

// notes are the numbers of the labels that a cell bears and not every cell does.
func (r *Report) notes(c *Cell) (text string) {
	for _, m := range c.Labels {
		if !r.everywhere(m.Name) {
			text += fmt.Sprintf(" [%d]", r.note(m.Name))
		}
	}
	return text
}

// aa shows the band of bare against bare.
func aa(b *Band) string {
	if b == nil || !b.Low.Is() || !b.High.Is() {
		return "–"
	}
	return quantity.Between(b.Low, b.High)
}
