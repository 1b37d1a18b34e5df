package lab

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/control"
	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/problem"
)

// hears is a named watcher that ignores its events.
type hears struct {
	control.Watcher
	name string
}

// TestQuietly: the steps of recreating settings are displayed only if one fails. Afterwards
// everything is displayed as before.
func TestQuietly(t *testing.T) {
	broken := errors.New("broken")
	for _, wrong := range []error{nil, broken} {
		loud := hears{name: "loud"}
		s := &labSite{Session: &control.Session{Watcher: loud, Command: "orrery lab run"}}
		shown, during := false, ""
		err := s.showIfFailed(func() (control.Watcher, func()) {
			return hears{name: "aside"}, func() { shown = true }
		}, func() error {
			during = s.Session.Watcher.(hears).name + " of " + s.Session.Command
			return wrong
		})
		if !errors.Is(err, wrong) || shown != (wrong != nil) || during != "aside of orrery lab run" ||
			s.Session.Watcher != control.Watcher(loud) {
			t.Errorf("%v: %v; shown is %t; told was %q; then it is %v", wrong, err, shown, during, s.Session.Watcher)
		}
	}
}

// TestBookFacts: a run is resumed only with the same programs, and the recorded facts of the host
// stay unchanged.
func TestBookFacts(t *testing.T) {
	of := func(name, digest string) hostFacts {
		return hostFacts{Programs: []program{{"other", map[string]string{experiment.Bare: "0"}},
			{name, map[string]string{experiment.Bare: digest, "lxc": "any"}}}}
	}
	text := func(k hostFacts) json.RawMessage {
		all, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	for what, c := range map[string]struct {
		former json.RawMessage
		writes bool
		wrong  string
	}{
		"the first run":          {nil, true, ""},
		"with the same programs": {text(of("fio", "1")), false, ""},
		"with others beside":     {text(of("iperf", "2")), false, ""},
		"with another program": {text(of("fio", "2")), false,
			"fio has changed since the earlier rounds: SHA-256 2 then, 1 now"},
		"what cannot be read": {json.RawMessage("{"), true, ""},
	} {
		dir := filepath.Join(t.TempDir(), "bundle")
		w, err := bundle.Create(t.Context(), dir, bundle.Manifest{})
		if err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(filepath.Join(dir, "facts.json"))
		err = (&recorder{Writer: w}).facts(of("fio", "1"), c.former)
		after, _ := os.ReadFile(filepath.Join(dir, "facts.json"))
		if (err == nil) != (c.wrong == "") || err != nil &&
			(!problem.Is(err, problem.Surprise) || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %v", what, err)
		}
		if wrote := string(after) != string(before); wrote != c.writes {
			t.Errorf("%s: the facts are written: %t", what, wrote)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A page is a report whose writing may fail.
type page struct{ failure error }

func (p page) HTML(to io.Writer) error {
	_, err := io.WriteString(to, "<html>")
	return errors.Join(err, p.failure)
}

// TestWritePage: a page is written completely, or the former one stays.
func TestWritePage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	if err := WritePage(page{}, path); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := WritePage(page{broken}, path); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "<html>" {
		t.Errorf("the page is %q (%v)", text, err)
	}
}
