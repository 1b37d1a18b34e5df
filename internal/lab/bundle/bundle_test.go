package bundle

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

func begin(t *testing.T) (string, *Writer) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "b1")
	w, err := Create(t.Context(), dir, Manifest{Experiment: "cost", Who: "ada", State: Running,
		Began: time.Unix(1000, 0).UTC(), Seed: math.MaxUint64})
	if err != nil {
		t.Fatal(err)
	}
	return dir, w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWriteAndRead(t *testing.T) {
	dir, w := begin(t)
	must(t, w.WriteExperiment([]byte("name = \"cost\"\n")))
	must(t, w.WriteFacts(map[string]string{"kernel": "6.1"}))
	must(t, w.AppendTrial(Trial{Round: 1, Setting: "bare", Test: "net",
		Samples: []test.Sample{{Figure: "tcp", Value: 9.4e9}}}))
	must(t, w.AppendSecond(map[string]int{"at": 1}))
	must(t, w.WriteOutput("net/bare-1.json", []byte("{}")))
	must(t, w.Close())
	c, err := Read(dir)
	must(t, err)
	if len(c.Damaged) > 0 || len(c.Trials) != 1 || c.Trials[0].Samples[0].Value != 9.4e9 || len(c.Seconds) != 1 ||
		c.Facts == nil || c.Experiment == nil {
		t.Errorf("read %+v", c)
	}
	if c.Manifest.Format != Format || c.Manifest.Seed != math.MaxUint64 {
		t.Errorf("head %+v", c.Manifest)
	}
	if c.Manifest.State != Interrupted {
		t.Errorf("a run that ended without saying so is %q", c.Manifest.State)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "output/net/bare-1.json")); string(text) != "{}" {
		t.Errorf("kept %q", text)
	}
	if _, err := Create(t.Context(), dir, Manifest{}); err == nil {
		t.Error("a bundle was made over another")
	}
	if w.WriteOutput("../x", nil) == nil {
		t.Error("a file was kept outside of the bundle")
	}
}

func TestOneWriter(t *testing.T) {
	dir, w := begin(t)
	if !IsLocked(dir) {
		t.Error("nobody seems to write the bundle")
	}
	if c, err := Read(dir); err != nil || c.Manifest.State != Running {
		t.Errorf("state %q, %v", c.Manifest.State, err)
	}
	_, _, err := Open(t.Context(), dir, "bob")
	var p *problem.Problem
	if !errors.As(err, &p) || p.Kind != problem.Locked || !strings.Contains(err.Error(), "ada") {
		t.Errorf("a second writer: %v", err)
	}
	must(t, w.Close())
	again, _, err := Open(t.Context(), dir, "bob")
	must(t, err)
	must(t, again.Close())
}

func TestNoNumber(t *testing.T) {
	dir, w := begin(t)
	must(t, w.AppendTrial(Trial{Samples: []test.Sample{{Figure: "a", Value: math.NaN()}, {Figure: "b", Value: 1}}}))
	if err := w.AppendSecond(math.Inf(1)); err == nil || !strings.Contains(err.Error(), "JSON cannot hold +Inf") {
		t.Errorf("a second without meaning: %v", err)
	}
	must(t, w.Close())
	c, err := Read(dir)
	must(t, err)
	if got := c.Trials[0]; got.Error != "a is not a number: NaN" || len(got.Samples) != 1 {
		t.Errorf("trial %+v", got)
	}
}

// TestTorn: if a killed run leaves an incomplete last line, all lines before are readable, and the
// resumed run continues after them.
func TestTorn(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp("", "torn")
		if err != nil {
			r.Fatal(err)
		}
		defer os.RemoveAll(dir)
		w, err := Create(t.Context(), filepath.Join(dir, "b"), Manifest{})
		if err != nil {
			r.Fatal(err)
		}
		n := rapid.IntRange(1, 5).Draw(r, "trials")
		size := rapid.SampledFrom([]int{1, 100, 70000}).Draw(r, "size")
		var before int64
		path := filepath.Join(dir, "b", TrialsFile)
		for i := range n {
			if f, err := os.Stat(path); err == nil {
				before = f.Size()
			}
			if err := w.AppendTrial(Trial{Round: i, Output: strings.Repeat("x", size)}); err != nil {
				r.Fatal(err)
			}
		}
		w.Close()
		f, _ := os.Stat(path)
		if err := os.Truncate(path, before+rapid.Int64Range(0, f.Size()-before-1).Draw(r, "torn")); err != nil {
			r.Fatal(err)
		}
		w, c, err := Open(t.Context(), filepath.Join(dir, "b"), "ada")
		if err != nil || len(c.Trials) != n-1 {
			r.Fatalf("%v, %d trials of %d", err, len(c.Trials), n-1)
		}
		if err := errors.Join(w.AppendTrial(Trial{Round: 99}), w.Close()); err != nil {
			r.Fatal(err)
		}
		if c, err = Read(filepath.Join(dir, "b")); err != nil || len(c.Damaged) > 0 || len(c.Trials) != n ||
			c.Trials[n-1].Round != 99 {
			r.Fatalf("after going on: %v %v, %d trials", err, c.Damaged, len(c.Trials))
		}
	})
}

func TestDamaged(t *testing.T) {
	dir, w := begin(t)
	must(t, w.Close())
	must(t, os.WriteFile(filepath.Join(dir, TrialsFile),
		[]byte("{\"round\":1}\n{\"round\":x}\n{\"round\":\"two\"}\n{\"round\":3}\n"), 0o644))
	c, err := Read(dir)
	must(t, err)
	if len(c.Trials) != 2 || len(c.Damaged) != 2 {
		t.Fatalf("%d trials, damaged: %v", len(c.Trials), c.Damaged)
	}
	for i, want := range []string{"trials.jsonl:2: this line is damaged and was skipped: invalid JSON at byte 10",
		"trials.jsonl:3: this line is damaged and was skipped: \"round\" must not be a string"} {
		if !strings.Contains(c.Damaged[i].Error(), want) {
			t.Errorf("got %q, want %q", c.Damaged[i], want)
		}
	}
	if _, _, err := Open(t.Context(), dir, "ada"); err == nil {
		t.Error("a damaged bundle was gone on with")
	}
}

func TestNoBundle(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "this is not a bundle: it has no bundle.json",
		"{}":                        "this is not a bundle: bundle.json has no key format",
		`{"format": 7}`:             "the bundle has format 7; this orrery reads formats up to 1",
		"{\n\"format\": 1,\n x":     "bundle.json:3: bundle.json is damaged: invalid JSON",
		`{"format":1,"rounds":"3"}`: `bundle.json:1: bundle.json is damaged: "rounds" must not be a string`,
	} {
		dir := t.TempDir()
		if text != "" {
			must(t, os.WriteFile(filepath.Join(dir, ManifestFile), []byte(text), 0o644))
		}
		if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a bundle that is not there was read")
	}
}

func TestList(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"late", "early"} {
		w, err := Create(t.Context(), filepath.Join(dir, name),
			Manifest{ID: fmt.Sprint(i), State: Done, Began: time.Unix(int64(10-i), 0)})
		must(t, err)
		must(t, w.Close())
	}
	must(t, os.MkdirAll(filepath.Join(dir, "other"), 0o755))
	must(t, os.MkdirAll(filepath.Join(dir, "newer"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "newer", ManifestFile), []byte(`{"format": 9}`), 0o644))
	heads, err := List(dir)
	if len(heads) != 2 || heads[0].ID != "early" || heads[1].ID != "late" {
		t.Errorf("listed %+v", heads)
	}
	if err == nil || !strings.Contains(err.Error(), "format 9") {
		t.Errorf("of the one that cannot be read: %v", err)
	}
	if heads, err := List(filepath.Join(dir, "none")); heads != nil || err != nil {
		t.Errorf("no directory: %v, %v", heads, err)
	}
}
