package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/lab/report/cells"
)

// csvColumns are the columns of report.csv. Values are in the row's unit. Ratios are to bare.
var csvColumns = []string{"test", "kind", "copies", "figure", "unit", "better", "setting", "n", "median", "low",
	"high", "least", "most", "spread",
	"single_median", "single_spread", "ratio", "ratio_low", "ratio_high", "percent_of_bare", "p", "p_adjusted",
	"control_low", "control_high",
	"verdict", "effect", "labels", "failed", "missing", "instances", "between_instances", "between_rounds", "again",
	"emulated"}

// CSV writes report.csv: a row for each test, figure and setting.
func (r *Report) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(csvColumns); err != nil {
		return err
	}
	for t, f := range r.Tests.Rows() {
		for _, c := range f.Cells {
			if err := out.Write(record(t, f, c)); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func record(t *Test, f *Figure, c *Cell) []string {
	// unknown values stay empty
	whole, single, ratio, band := make([]string, 7), make([]string, 2), make([]string, 6), make([]string, 2)
	if s := c.Summary; s != nil {
		whole = []string{strconv.Itoa(s.N), cells.Exact(s.Median), cells.Exact(s.Low), cells.Exact(s.High),
			cells.Exact(s.Least), cells.Exact(s.Most), cells.Exact(s.Spread)}
	} else {
		whole[0] = "0"
	}
	if s := c.Single; s != nil {
		single = []string{cells.Exact(s.Median), cells.Exact(s.Spread)}
	}
	verdict, spread := "", []string{"0", "", ""}
	if r := c.Ratio; r != nil {
		verdict = string(r.Verdict)
		spread[0] = strconv.Itoa(r.Instances)
	}
	if r := f.shownRatio(c); r != nil {
		ratio = []string{cells.Exact(r.Value), cells.Exact(r.Low), cells.Exact(r.High), cells.Exact(r.Value * 100),
			cells.Exact(r.P), cells.Exact(r.Adjusted)}
		spread[1], spread[2] = cells.Exact(float64(r.Between)), cells.Exact(float64(r.Within))
	}
	if f.Control != nil {
		band = []string{cells.Exact(f.Control.Low), cells.Exact(f.Control.High)}
	}
	var labels []string
	for _, m := range c.Labels {
		labels = append(labels, fmt.Sprintf("%s %d/%d", m.Name, m.Count, m.Of))
	}
	emulation := ""
	if c.Emulated {
		emulation = "emulated"
	}
	head := []string{cells.EscapeFormula(t.Name), cells.EscapeFormula(t.Kind), strconv.Itoa(t.Copies),
		cells.EscapeFormula(f.Name),
		cells.EscapeFormula(f.Unit), cells.EscapeFormula(string(f.Better)), cells.EscapeFormula(c.Setting)}
	words := []string{verdict, string(f.Effect(c)), cells.EscapeFormula(strings.Join(labels, "; ")),
		strconv.Itoa(c.Failed),
		cells.EscapeFormula(c.Missing)}
	return slices.Concat(head, whole, single, ratio, band, words, spread,
		[]string{cells.EscapeFormula(c.Again), emulation})
}

// JSON writes report.json.
func (r *Report) JSON(w io.Writer) error { return writeJSON(w, r) }
