package prove

import (
	"bytes"
	_ "embed" // the page
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"text/tabwriter"

	"orrery/internal/lab/report"
)

//go:embed page.html.tmpl
var pageText string

// JSON writes the report as JSON.
func (r *Report) JSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// WriteText writes the table.
func (r *Report) WriteText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tLIMIT\tDECLARED\tMEASURED\tDIFFERS\tA/A\tNEIGHBOUR\tVERDICT")
	for i := range r.Rows {
		c := r.Rows[i].cells()
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Node, c.Limit, c.Declared, c.Measured, c.Differs, c.Spread,
			c.Neighbour, c.Verdict)
	}
	return w.Flush()
}

// cells are the texts of a row.
type cells struct{ Node, Limit, Declared, Measured, Differs, Spread, Neighbour, Verdict, Class string }

func (r *Row) cells() cells {
	c := cells{Node: r.Node, Limit: r.Title(), Declared: Format(r.Value, r.Unit), Measured: "-", Differs: "-", Spread: "-",
		Neighbour: "-", Verdict: r.Text(), Class: map[Verdict]string{Holds: "better", Untold: "undecided"}[r.Verdict]}
	if c.Class == "" {
		c.Class = "worse"
	}
	if len(r.Rounds) > 0 {
		c.Measured = Format(r.Measured, r.Unit)
		c.Differs, c.Spread = fmt.Sprintf("%+.2f %%", 100*r.Deviation), fmt.Sprintf("%.2f %%", 100*r.Spread)
	}
	switch n := r.Neighbour; {
	case n == nil:
	case n.Why != "":
		c.Neighbour = n.Node + ": " + n.Why
	default:
		c.Neighbour = fmt.Sprintf("%s ×%.3f", n.Node, n.Ratio)
	}
	return c
}

// HTML writes the page.
func (r *Report) HTML(w io.Writer) error {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	page := struct {
		*Report
		Style template.CSS
		Cells []cells
	}{Report: r, Style: report.Style()}
	for i := range r.Rows {
		page.Cells = append(page.Cells, r.Rows[i].cells())
	}
	var b bytes.Buffer
	if err := t.Execute(&b, page); err != nil {
		return err
	}
	_, err = b.WriteTo(w)
	return err
}
