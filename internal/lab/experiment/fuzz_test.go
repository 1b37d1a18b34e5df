package experiment

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"orrery/internal/problem"
)

// FuzzParse checks that no text makes Parse panic, that every mistake has a place and a
// description, and that an experiment without mistakes is complete.
func FuzzParse(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*valid-*.toml")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add(defaultText)
	f.Fuzz(func(t *testing.T, text []byte) {
		// The fuzzer does not detect endless loops.
		defer time.AfterFunc(10*time.Second, func() { panic("no end with " + strconv.Quote(string(text))) }).Stop()
		for _, read := range []func(string, []byte) (*Experiment, error){parse, parseAnywhere} {
			e, err := read("x.toml", text)
			if err != nil {
				located(t, err)
				continue
			}
			whole(t, e)
		}
	})
}

func located(t *testing.T, err error) {
	var list problem.List
	if !errors.As(err, &list) || len(list) == 0 {
		t.Fatalf("%T %v", err, err)
	}
	for _, p := range list {
		if p.What == "" || !strings.HasPrefix(p.Where, "x.toml:") || p.Kind != problem.Mistake {
			t.Errorf("%#v", p)
		}
	}
}

func whole(t *testing.T, e *Experiment) {
	if len(e.Tests) == 0 || e.Rounds < minRounds || e.Most < e.Rounds || e.Suite == "" || e.Name == "" {
		t.Errorf("%+v", e)
	}
	for i := range e.Tests {
		if one := &e.Tests[i]; one.Test == nil || len(one.Copies) == 0 || one.Name == "" || one.Kind == "" {
			t.Errorf("%+v", one)
		}
	}
	for _, s := range e.Settings {
		if s.Name == "" || s.Engine == "" || s.Network == "" {
			t.Errorf("%+v", s)
		}
	}
}

func parseAnywhere(path string, text []byte) (*Experiment, error) { return Parse(path, text, "") }
