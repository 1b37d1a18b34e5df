package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/stats"
	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// measured creates the bundle of a run in which one test took different times in two settings.
func measured(t *testing.T, c *control.Session, id string, slower float64) string {
	t.Helper()
	w, before, err := openBundle(t.Context(), c, &resumed{},
		Options{Experiment: experiment.Default(), To: filepath.Join(Bundles(c), id), Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	b := &recorder{w, before.Manifest}
	of := b.head.Tests[0]
	for round := range 12 {
		for slot, setting := range []string{experiment.Bare, experiment.Control, "lxc"} {
			value := 1 + float64(round%3)/1000
			if setting == "lxc" {
				value *= slower
			}
			err := w.AppendTrial(bundle.Trial{
				Round: round, Slot: slot, Instance: 1, Setting: setting, Test: of.Name, Began: time.Now(), Ended: time.Now(),
				Samples: []test.Sample{{Figure: of.Figures[0].Name, Value: value}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := b.RoundDone(round + 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.end(nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Dir()
}

// TestJudge: the report of a run can be computed again. Changed figures and damage are detected.
// Two runs can be compared.
func TestJudge(t *testing.T) {
	c := &control.Session{Dirs: host.Dirs{State: t.TempDir()}}
	first := measured(t, c, "default-1", 1)
	measured(t, c, "default-2", 1.5)
	made, err := WriteReport(first)
	if err != nil || made.Dir != first || made.Report == nil {
		t.Fatalf("%+v, %v", made, err)
	}
	checked, err := Check(first)
	if err != nil || len(checked.Differences) > 0 {
		t.Errorf("%+v, %v", checked, err)
	}
	if State(bundle.Manifest{State: bundle.Done}, first) != string(bundle.Done) {
		t.Error("it is not done")
	}
	if compared, err := Compare(c, []string{"default-1"}, []string{"default-2"}); err != nil || compared == nil {
		t.Errorf("%+v, %v", compared, err)
	}
	if _, err := Compare(c, []string{"default-1"}, []string{"default-3"}); problem.ExitCode(err) != int(problem.Usage) {
		t.Error(err)
	}
	slow := filepath.Join(measured(t, c, "default-slow", 9), bundle.ManifestFile)
	head, err := os.ReadFile(slow)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(slow, []byte(strings.Replace(string(head), `"name": "veth",`,
		`"name": "veth", "emulated": true,`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if compared, err := Compare(c, []string{"default-1"},
		[]string{"default-slow"}); problem.ExitCode(err) != int(problem.Mistake) || compared != nil {
		t.Errorf("what was emulated is set beside what was not: %+v, %v", compared, err)
	}
	if facts, err := Doctor(t.Context(), c); err != nil {
		t.Errorf("%+v, %v", facts, err)
	}
	trials := filepath.Join(first, bundle.TrialsFile)
	text, err := os.ReadFile(trials)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(trials, []byte(strings.Replace(string(text), `"value":1`, `"value":9`, 12)),
		0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(first); err == nil {
		t.Error("a value was changed, and nobody says so")
	}
}

// TestCompareRuns: several runs of each side are compared, also using other runs of the experiment
// on this host. Each run counts once.
func TestCompareRuns(t *testing.T) {
	c := &control.Session{Dirs: host.Dirs{State: t.TempDir()}}
	for i, id := range []string{"a1", "a2", "a3", "b1", "b2", "b3", "old1", "old2"} {
		slower := 1 + float64(i%3)/500
		if id[0] == 'b' {
			slower *= 2
		}
		measured(t, c, id, slower)
	}
	compared, err := Compare(c, []string{"a1", "a2", "a3"}, []string{"b1", "b2", "b3"})
	if err != nil || compared.Former != 2 || len(compared.Befores) != 3 || len(compared.Afters) != 3 {
		t.Fatalf("%+v, %v", compared, err)
	}
	for _, row := range compared.Rows {
		if want := row.Setting == "lxc"; (row.Value.Verdict == stats.Differs) != want {
			t.Errorf("%s: %+v", row.Setting, row.Value)
		}
	}
	single, err := Compare(c, []string{"a1"}, []string{"b1"})
	if err != nil || single.Former != 6 {
		t.Fatalf("%+v, %v", single, err)
	}
	for _, row := range single.Rows {
		if row.Value.Verdict == stats.Differs || row.Value.Verdict == stats.Slight {
			t.Errorf("one run on each side: %s: %+v", row.Setting, row.Value)
		}
	}
	if _, err := Compare(c, []string{"a1", "a1"}, []string{"b1"}); problem.ExitCode(err) != int(problem.Usage) {
		t.Errorf("a run twice: %v", err)
	}
}
