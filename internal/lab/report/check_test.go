package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/lab/bundle"
)

// written returns the directory of a bundle with its report.
func written(t *testing.T) string {
	t.Helper()
	s := simulate(7)
	s.rounds = 6
	dir := s.write(t)
	c, err := bundle.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := Analyse(c).Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func tamper(t *testing.T, dir, file, old, new string) {
	t.Helper()
	path := filepath.Join(dir, file)
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("%s has no %q: %v", file, old, err)
	}
	at := strings.Index(string(text), old)
	if file == bundle.TrialsFile { // the first round does not count
		at = strings.LastIndex(string(text), old)
	}
	if err := os.WriteFile(path, []byte(string(text[:at])+new+string(text[at+len(old):])), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCheck(t *testing.T) {
	dir := written(t)
	c, err := Check(dir)
	if err != nil || len(c.Differences) > 0 || len(c.Damaged) > 0 || c.Figures < 1000 {
		t.Fatalf("%v, %d figures, %v %v", err, c.Figures, c.Differences, c.Damaged)
	}
	for _, x := range []struct{ file, old, new, want string }{
		{"report.json", `"kept": 6`, `"kept": 7`, "report.json: kept: recorded 7, recomputed 6"},
		{"report.json", `"median": 6`, `"median": 7`,
			"report.json: tests, capture, figures, lossless rate, cells, bare, summary, median: recorded 7"},
		{"report.csv", "capture,capture,1,lossless rate,bit/s,more,veth,6,",
			"capture,capture,1,lossless rate,bit/s,more,veth,9,", "report.csv: line 4, n: recorded 9, recomputed 6"},
		{"samples.csv", "score,1/s,bare,1,", "score,1/s,bare,2,", "samples.csv: line "},
		{"experiment.toml", "cost", "coast", "experiment.toml: SHA-256: recorded"},
		{"trials.jsonl", `"round":2,"slot":0`, `"round":2,"slot":x`, ""},
		{"trials.jsonl", `"figure":"score","value":14`, `"figure":"score","value":24`, "cpu x8, figures, score"},
	} {
		t.Run(x.file+" "+x.want, func(t *testing.T) {
			dir := written(t)
			tamper(t, dir, x.file, x.old, x.new)
			c, err := Check(dir)
			if err != nil {
				t.Fatal(err)
			}
			if x.want == "" {
				if len(c.Damaged) != 1 || !strings.Contains(c.Damaged[0].Error(), "trials.jsonl:") {
					t.Errorf("damaged: %v", c.Damaged)
				}
				return
			}
			for _, d := range c.Differences {
				if strings.Contains(d.String(), x.want) {
					return
				}
			}
			t.Errorf("found %v", c.Differences)
		})
	}
}

func TestCheckNothing(t *testing.T) {
	dir := simulate(1).write(t)
	if _, err := Check(dir); err == nil || !strings.Contains(err.Error(), "no report yet") {
		t.Errorf("without a report: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "report.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(dir); err == nil || !strings.Contains(err.Error(), "not valid JSON") {
		t.Errorf("with half a report: %v", err)
	}
}
