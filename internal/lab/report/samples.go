package report

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/report/quantity"
)

// samplesColumns holds the columns of samples.csv.
var samplesColumns = []string{"test", "figure", "unit", "setting", "round", "instance", "slot", "copy", "began",
	"value",
	"labels", "error"}

// writeSamples writes samples.csv with a row for each measured number, round by round, in the unit of
// its figure. Round 0 is the rehearsal, which no other table contains. A failed trial has one row
// with the reason and no figure.
func writeSamples(w io.Writer, tests []bundle.Test, trials []bundle.Trial) error {
	out := csv.NewWriter(w)
	if err := out.Write(samplesColumns); err != nil {
		return err
	}
	units := map[[2]string]string{}
	for _, t := range tests {
		for _, f := range t.Figures {
			units[[2]string{t.Name, f.Name}] = f.Unit
		}
	}
	for _, t := range trials {
		rows := [][2]string{{"", ""}} // figure and value
		if t.Error == "" {
			rows = rows[:0]
			for _, s := range t.Samples {
				rows = append(rows, [2]string{s.Figure, exact(s.Value)})
			}
		}
		for _, row := range rows {
			if err := out.Write(sampleRecord(&t, row[0], units[[2]string{t.Test, row[0]}], row[1])); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func sampleRecord(t *bundle.Trial, figure, unit, value string) []string {
	var labels []string
	for _, l := range t.Labels {
		if strings.HasPrefix(figure, l.Where) {
			labels = append(labels, l.Name)
		}
	}
	reason, _, _ := strings.Cut(strings.TrimSpace(t.Error), "\n")
	return []string{escapeFormula(t.Test), escapeFormula(figure), escapeFormula(unit), escapeFormula(t.Setting),
		strconv.Itoa(t.Round),
		strconv.Itoa(t.Instance), strconv.Itoa(t.Slot),
		strconv.Itoa(t.Copy), t.Began.UTC().Format(time.RFC3339Nano), value, escapeFormula(strings.Join(labels, "; ")),
		escapeFormula(reason)}
}

// escapeFormula prevents spreadsheets from interpreting a text as a formula, as OWASP advises ("CSV
// Injection").
func escapeFormula(words string) string {
	if words != "" && strings.ContainsRune("=+-@\t\r", rune(words[0])) {
		return "'" + words
	}
	return words
}

// exact returns a number with all digits, or "" if it is missing or infinite.
func exact(n float64) string {
	if !quantity.Number(n).IsFinite() {
		return ""
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}
