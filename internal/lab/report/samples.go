package report

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"

	"orrery/internal/lab/bundle"
)

// samplesHead are the columns of samples.csv.
var samplesHead = []string{"test", "figure", "unit", "setting", "round", "instance", "slot", "copy", "began", "value", "labels", "error"}

// Samples writes samples.csv: a row for each measured number, round by round, in the unit of its figure. Round 0 is the rehearsal, which is in no
// other table. A trial that failed has one row with the reason and no figure.
func (r *Report) Samples(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(samplesHead); err != nil {
		return err
	}
	units := map[place]string{}
	for t, f := range r.figures() {
		units[place{t.Name, f.Name}] = f.Unit
	}
	for _, t := range r.samples {
		rows := [][2]string{{"", ""}} // figure, value
		if t.Error == "" {
			rows = rows[:0]
			for _, s := range t.Samples {
				rows = append(rows, [2]string{s.Figure, exact(s.Value)})
			}
		}
		for _, row := range rows {
			if err := out.Write(sampleRecord(&t, row[0], units[place{t.Test, row[0]}], row[1])); err != nil {
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
	return []string{told(t.Test), told(figure), told(unit), told(t.Setting), strconv.Itoa(t.Round), strconv.Itoa(t.Instance), strconv.Itoa(t.Slot),
		strconv.Itoa(t.Copy), t.Began.UTC().Format(time.RFC3339Nano), value, told(strings.Join(labels, "; ")), told(firstLine(t.Error))}
}
