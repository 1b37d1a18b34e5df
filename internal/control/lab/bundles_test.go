package lab

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/problem"
)

// resumed is a Watcher that only records resumed runs.
type resumed struct {
	Watcher
	dirs  []string
	apart []string
}

func (r *resumed) NotResumed(dir, why string) { r.apart = append(r.apart, dir+": "+why) }

func (r *resumed) Resumed(dir string, _ int) { r.dirs = append(r.dirs, dir) }

// TestOpenBundle: a run is resumed in the bundle of an unfinished run of the same experiment,
// unless a fresh run is requested or another version wrote the bundle.
func TestOpenBundle(t *testing.T) {
	c := &control.Session{Dirs: host.Dirs{State: t.TempDir()}}
	o := Options{Experiment: experiment.Default(), Orrery: "1"}
	open := func(o Options) (dir string, goesOn bool) {
		t.Helper()
		var w resumed
		book, _, err := openBundle(t.Context(), c, &w, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := book.Close(); err != nil {
			t.Fatal(err)
		}
		return book.Dir(), len(w.dirs) == 1 && w.dirs[0] == book.Dir()
	}
	first := o
	first.To = filepath.Join(Bundles(c), "default-first")
	dir, goesOn := open(first)
	if dir != first.To || goesOn {
		t.Errorf("the first run is in %s and goes on: %v", dir, goesOn)
	}
	if again, goesOn := open(o); again != dir || !goesOn {
		t.Errorf("the second is in %s and goes on: %v", again, goesOn)
	}
	if State(bundle.Manifest{State: bundle.Running}, dir) != "killed" {
		t.Error("nobody runs it, and it is not said to be killed")
	}
	part, err := o.Experiment.WithTests([]string{"cpu"})
	if err != nil {
		t.Fatal(err)
	}
	for what, o := range map[string]Options{"of a part": {Experiment: part, Orrery: "1"},
		"fresh":              {Experiment: o.Experiment, Orrery: "1", Fresh: true},
		"of another version": {Experiment: o.Experiment, Orrery: "2"}} {
		made, goesOn := open(o)
		if goesOn || made == dir {
			t.Errorf("one that is %s goes on", what)
		}
		if err := os.RemoveAll(made); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFind: a bundle is found by its path and by its ID. If there is none, the error names the
// nearest ID.
func TestFind(t *testing.T) {
	c := &control.Session{Dirs: host.Dirs{State: t.TempDir()}}
	book, _, err := openBundle(t.Context(), c, &resumed{},
		Options{Experiment: experiment.Default(), To: filepath.Join(Bundles(c), "default-20261101")})
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	for _, name := range []string{"default-20261101", book.Dir()} {
		if dir, err := Find(c, name); err != nil || dir != book.Dir() {
			t.Errorf("%s is %s (%v)", name, dir, err)
		}
	}
	if _, err := Find(c, "default-20261102"); problem.ExitCode(err) != int(problem.Usage) ||
		!strings.Contains(err.Error(), "did you mean default-20261101?") {
		t.Errorf("%v", err)
	}
	if _, err := Find(c, "/nowhere"); problem.ExitCode(err) != int(problem.Usage) {
		t.Errorf("%v", err)
	}
}

// TestHistory: without names, the runs of the last experiment are used, the oldest first. Another
// experiment can be named. Runs without a round are left out.
func TestHistory(t *testing.T) {
	c := &control.Session{Dirs: host.Dirs{State: t.TempDir()}}
	if _, err := History(c, nil, ""); problem.ExitCode(err) != int(problem.Usage) {
		t.Errorf("without runs: %v", err)
	}
	for i, h := range []bundle.Manifest{
		{ID: "b-2", Experiment: "b", Began: time.Unix(2, 0), Rounds: 3},
		{ID: "b-1", Experiment: "b", Began: time.Unix(1, 0), Rounds: 3},
		{ID: "a-1", Experiment: "a", Began: time.Unix(0, 0), Rounds: 3},
		{ID: "c-1", Experiment: "c", Began: time.Unix(9, 0), Rounds: 0},
	} {
		h.Format, h.State = bundle.Format, bundle.Done
		w, err := bundle.Create(t.Context(), filepath.Join(Bundles(c), h.ID), h)
		if err != nil {
			t.Fatal(i, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for experiment, want := range map[string][]string{"": {"b-1", "b-2"}, "a": {"a-1"}} {
		h, err := History(c, nil, experiment)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range h.Runs {
			got = append(got, r.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %q: %v, want %v", experiment, got, want)
		}
	}
	if h, err := History(c, []string{"a-1", filepath.Join(Bundles(c), "b-1")}, ""); err != nil || len(h.Runs) != 2 {
		t.Errorf("named: %+v %v", h, err)
	}
	if _, err := History(c, nil, "d"); err == nil || !strings.Contains(err.Error(), "of experiment d") {
		t.Errorf("%v", err)
	}
}

// TestOtherConditions: a run is not resumed under another kernel, host or Orrery, and its facts
// stay unchanged. If the bundle would have to be the same, that is an error.
func TestOtherConditions(t *testing.T) {
	for what, c := range map[string]struct {
		head  func(*bundle.Manifest)
		facts string
		says  string
	}{
		"kernel": {func(*bundle.Manifest) {}, `{"kernel": {"release": "5.10.1"}}`, "kernel: 5.10.1 then"},
		"host":   {func(h *bundle.Manifest) { h.Host = "another-host" }, `{}`, "host: another-host then"},
		"orrery": {func(h *bundle.Manifest) { h.Orrery = "0.0.1" }, ``, "Orrery: 0.0.1 then, 1 now"},
	} {
		t.Run(what, func(t *testing.T) {
			s := &control.Session{Dirs: host.Dirs{State: t.TempDir()}}
			dir := filepath.Join(Bundles(s), "default-first")
			o := Options{Experiment: experiment.Default(), Orrery: "1", To: dir}
			book, before, err := openBundle(t.Context(), s, &resumed{}, o)
			if err != nil {
				t.Fatal(err)
			}
			c.head(&before.Manifest)
			err = book.WriteManifest(before.Manifest)
			if c.facts != "" {
				err = errors.Join(err, book.WriteFacts(json.RawMessage(c.facts)))
			}
			if err := errors.Join(err, book.Close()); err != nil {
				t.Fatal(err)
			}
			_, _, err = openBundle(t.Context(), s, &resumed{}, o)
			if problem.ExitCode(err) != int(problem.Surprise) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("in the same directory: %v", err)
			}
			var w resumed
			o.To = ""
			book, _, err = openBundle(t.Context(), s, &w, o)
			if err != nil {
				t.Fatal(err)
			}
			defer book.Close()
			if book.Dir() == dir || len(w.dirs) > 0 || len(w.apart) != 1 || !strings.Contains(w.apart[0], c.says) {
				t.Errorf("it is in %s, goes on with %v, apart from %v", book.Dir(), w.dirs, w.apart)
			}
		})
	}
}
