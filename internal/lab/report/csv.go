package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"orrery/internal/lab/report/quantity"
)

// columnsOfCSV are the columns of report.csv; values are in the unit that is named, ratios are to bare.
var columnsOfCSV = []string{"test", "kind", "copies", "figure", "unit", "better", "setting", "n", "median", "low", "high", "least", "most", "spread",
	"single_median", "single_spread", "ratio", "ratio_low", "ratio_high", "percent_of_bare", "p", "p_adjusted", "control_low", "control_high",
	"verdict", "effect", "labels", "failed", "missing", "instances", "between_instances", "between_rounds", "again"}

// CSV writes report.csv: a row for each test, figure and setting.
func (r *Report) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(columnsOfCSV); err != nil {
		return err
	}
	for _, t := range r.Tests {
		for i := range t.Figures {
			f := &t.Figures[i]
			for k := range f.Cells {
				if err := out.Write(record(t, f, &f.Cells[k])); err != nil {
					return err
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

func record(t Test, f *Figure, c *Cell) []string {
	none := Summary{Median: quantity.None(), Low: quantity.None(), High: quantity.None(), Least: quantity.None(), Most: quantity.None(), Spread: quantity.None()}
	s, single := none, none
	if c.Summary != nil {
		s = *c.Summary
	}
	if c.Single != nil {
		single = *c.Single
	}
	r := Ratio{Value: quantity.None(), Low: quantity.None(), High: quantity.None(), P: quantity.None(), Adjusted: quantity.None(), Between: quantity.None(), Within: quantity.None()}
	if c.Ratio != nil {
		r = *c.Ratio
	}
	band := Band{quantity.None(), quantity.None()}
	if f.Control != nil {
		band = *f.Control
	}
	var labels []string
	for _, m := range c.Labels {
		labels = append(labels, fmt.Sprintf("%s %d/%d", m.Name, m.Count, m.Of))
	}
	return []string{told(t.Name), told(t.Kind), strconv.Itoa(t.Copies), told(f.Name), told(f.Unit), told(string(f.Better)), told(c.Setting), strconv.Itoa(s.N),
		exact(s.Median), exact(s.Low), exact(s.High), exact(s.Least), exact(s.Most), exact(s.Spread), exact(single.Median), exact(single.Spread),
		exact(r.Value), exact(r.Low), exact(r.High), exact(r.Value * 100), exact(r.P), exact(r.Adjusted), exact(band.Low), exact(band.High),
		string(r.Verdict), string(f.Effect(c)), told(strings.Join(labels, "; ")), strconv.Itoa(c.Failed), told(c.Missing),
		strconv.Itoa(r.Instances), exact(r.Between), exact(r.Within), told(c.Again)}
}

// told keeps a spreadsheet from taking words for a formula, as OWASP advises ("CSV Injection").
func told(words string) string {
	if words != "" && strings.ContainsRune("=+-@\t\r", rune(words[0])) {
		return "'" + words
	}
	return words
}

// exact gives all digits, or nothing.
func exact(n quantity.Number) string {
	if !n.Is() {
		return ""
	}
	return strconv.FormatFloat(float64(n), 'g', -1, 64)
}

// JSON writes report.json.
func (r *Report) JSON(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	out.SetEscapeHTML(false)
	return out.Encode(r)
}
