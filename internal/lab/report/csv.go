package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
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
		whole = []string{strconv.Itoa(s.N), exact(s.Median), exact(s.Low), exact(s.High),
			exact(s.Least), exact(s.Most), exact(s.Spread)}
	} else {
		whole[0] = "0"
	}
	if s := c.Single; s != nil {
		single = []string{exact(s.Median), exact(s.Spread)}
	}
	verdict, spread := "", []string{"0", "", ""}
	if r := c.Ratio; r != nil {
		verdict = string(r.Verdict)
		spread[0] = strconv.Itoa(r.Instances)
	}
	if r := f.shownRatio(c); r != nil {
		ratio = []string{exact(r.Value), exact(r.Low), exact(r.High), exact(r.Value * 100),
			exact(r.P), exact(r.Adjusted)}
		spread[1], spread[2] = exact(float64(r.Between)), exact(float64(r.Within))
	}
	if f.Control != nil {
		band = []string{exact(f.Control.Low), exact(f.Control.High)}
	}
	var labels []string
	for _, m := range c.Labels {
		labels = append(labels, fmt.Sprintf("%s %d/%d", m.Name, m.Count, m.Of))
	}
	emulation := ""
	if c.Emulated {
		emulation = "emulated"
	}
	head := []string{escapeFormula(t.Name), escapeFormula(t.Kind), strconv.Itoa(t.Copies),
		escapeFormula(f.Name),
		escapeFormula(f.Unit), escapeFormula(string(f.Better)), escapeFormula(c.Setting)}
	words := []string{verdict, string(f.Effect(c)), escapeFormula(strings.Join(labels, "; ")),
		strconv.Itoa(c.Failed),
		escapeFormula(c.Missing)}
	return slices.Concat(head, whole, single, ratio, band, words, spread,
		[]string{escapeFormula(c.Again), emulation})
}

// JSON writes report.json.
func (r *Report) JSON(w io.Writer) error { return writeJSON(w, r) }
