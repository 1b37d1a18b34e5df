package report

import (
	"encoding/csv"
	"strings"
	"testing"

	"orrery/internal/lab/bundle"
)

// TestSamples: samples.csv has every number of trials.jsonl with its round, and the reason of each
// failed trial.
func TestSamples(t *testing.T) {
	c, err := bundle.Read(simulate(7).write(t))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(text(t, Analyse(c).Samples))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	got := map[[2]string]int{}
	for i, row := range rows[1:] {
		if i > 0 && len(rows[i][at["round"]]) == len(row[at["round"]]) && rows[i][at["round"]] > row[at["round"]] {
			t.Fatalf("round %s comes after round %s", row[at["round"]], rows[i][at["round"]])
		}
		if row[at["value"]] == "" && row[at["error"]] == "" {
			t.Fatalf("a row without a value and without a reason: %q", row)
		}
		got[[2]string{row[at["test"]], row[at["figure"]]}]++
		if row[at["figure"]] != "" && row[at["unit"]] == "" {
			t.Errorf("no unit: %q", row)
		}
	}
	want := map[[2]string]int{}
	for _, trial := range c.Trials {
		if trial.Error != "" {
			want[[2]string{trial.Test, ""}]++
		}
		for _, s := range trial.Samples {
			want[[2]string{trial.Test, s.Figure}]++
		}
	}
	for key, n := range want {
		if got[key] != n {
			t.Errorf("%v: %d rows for %d samples", key, got[key], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d kinds of rows, not %d", len(got), len(want))
	}
}

// TestPart: a report of a part of an experiment says so, and its command repeats that part. The
// command contains no name that a shell could interpret.
func TestPart(t *testing.T) {
	r := Analyse(&bundle.Contents{Manifest: bundle.Manifest{ID: "x", Part: []string{"net", "disk"}}})
	if got := r.Circumstances(); !strings.Contains(got, "only the tests net, disk") {
		t.Error(got)
	}
	if got := strings.Join(r.RerunCommands(), "\n"); !strings.Contains(got, "experiment.toml --only net,disk ") {
		t.Error(got)
	}
	r.Bundle.Part = []string{"net; rm -r x"}
	if got := strings.Join(r.RerunCommands(), "\n"); strings.Contains(got, "rm -r") {
		t.Error(got)
	}
}
