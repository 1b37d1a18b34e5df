package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/lab/report/quantity"
)

// columnsOfCSV are the columns of report.csv; values are in the unit that is named, ratios are to bare.
var columnsOfCSV = []string{"test", "kind", "copies", "figure", "unit", "better", "setting", "n", "median", "low", "high", "least", "most", "spread",
	"single_median", "single_spread", "ratio", "ratio_low", "ratio_high", "percent_of_bare", "p", "p_adjusted", "control_low", "control_high",
	"verdict", "effect", "labels", "failed", "missing", "instances", "between_instances", "between_rounds", "again", "emulated"}

// CSV writes report.csv: a row for each test, figure and setting.
func (r *Report) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(columnsOfCSV); err != nil {
		return err
	}
	for t, f := range r.figures() {
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
	whole, single, ratio, band := make([]string, 7), make([]string, 2), make([]string, 6), make([]string, 2) // what is not known is left empty
	if s := c.Summary; s != nil {
		whole = []string{strconv.Itoa(s.N), exact(s.Median), exact(s.Low), exact(s.High), exact(s.Least), exact(s.Most), exact(s.Spread)}
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
	if r := f.shown(c); r != nil {
		ratio = []string{exact(r.Value), exact(r.Low), exact(r.High), exact(r.Value * 100), exact(r.P), exact(r.Adjusted)}
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
	head := []string{told(t.Name), told(t.Kind), strconv.Itoa(t.Copies), told(f.Name), told(f.Unit), told(string(f.Better)), told(c.Setting)}
	words := []string{verdict, string(f.Effect(c)), told(strings.Join(labels, "; ")), strconv.Itoa(c.Failed), told(c.Missing)}
	return slices.Concat(head, whole, single, ratio, band, words, spread, []string{told(c.Again), emulation})
}

// told keeps a spreadsheet from taking words for a formula, as OWASP advises ("CSV Injection").
func told(words string) string {
	if words != "" && strings.ContainsRune("=+-@\t\r", rune(words[0])) {
		return "'" + words
	}
	return words
}

// exact gives all digits, or nothing.
func exact(n float64) string {
	if !quantity.Number(n).Is() {
		return ""
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}

// JSON writes report.json.
func (r *Report) JSON(w io.Writer) error { return writeJSON(w, r) }
