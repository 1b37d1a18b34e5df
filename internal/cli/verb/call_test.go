package verb

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/control"
	"orrery/internal/problem"
)

// newTestCall returns a call whose standard input is not a terminal, and the buffers for its
// output.
func newTestCall() (call *Call, out, errs *bytes.Buffer) {
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	return New(&control.Session{}, strings.NewReader("prod\n"), out, errs), out, errs
}

// TestAgree: the name of the site agrees only to what its flag is about. It is not read from input
// that is not a terminal.
func TestAgree(t *testing.T) {
	call, _, errs := newTestCall()
	c := &cobra.Command{}
	call.ProductionFlag(c)
	call.AgreeFlag(c, control.Volumes, "")
	if err := c.ParseFlags([]string{"--yes-production", "prod"}); err != nil {
		t.Fatal(err)
	}
	for about, want := range map[control.Consent]bool{control.Production: true, control.Volumes: false,
		control.Moves: false} {
		asked, err := call.Session.Confirmer.Ask(control.Question{About: about, Site: "prod"})
		if asked || (err == nil) != want || err != nil && !problem.Is(err, problem.Refused) {
			t.Errorf("%s: asked %t, %v", about, asked, err)
		}
	}
	if _, err := call.Session.Confirmer.Ask(control.Question{About: control.Production, Site: "other"}); err == nil {
		t.Error("one site's name agrees for another")
	}
	if errs.Len() > 0 {
		t.Errorf("asked where nobody sits: %s", errs.String())
	}
}

// TestYes: --yes agrees to what a site outside production may lose. Without it, a script goes on if
// only data outside volumes is lost.
func TestYes(t *testing.T) {
	for _, c := range []struct {
		args   []string
		q      control.Question
		agreed bool
	}{
		{nil, control.Question{About: control.Loss, Plain: true}, true},
		{nil, control.Question{About: control.Volumes, Plain: true}, false},
		{[]string{"--yes"}, control.Question{About: control.Loss, Plain: true}, true},
		{[]string{"--yes"}, control.Question{About: control.Volumes, Plain: true}, true},
		{[]string{"--yes"}, control.Question{About: control.Volumes}, false},
		{[]string{"--yes"}, control.Question{About: control.Production}, false},
	} {
		call, _, _ := newTestCall()
		flags := &cobra.Command{}
		call.YesFlag(flags)
		if err := flags.ParseFlags(c.args); err != nil {
			t.Fatal(err)
		}
		c.q.Site = "prod"
		asked, err := call.Session.Confirmer.Ask(c.q)
		if asked || (err == nil) != c.agreed || err != nil && !problem.Is(err, problem.Refused) {
			t.Errorf("%v, %+v: asked %t, %v", c.args, c.q, asked, err)
		}
	}
}

// TestAskOnTerminal: on a terminal, a yes agrees to lose data outside volumes, and only the name of
// the site agrees to everything else. The lock is released while it waits.
func TestAskOnTerminal(t *testing.T) {
	for _, c := range []struct {
		about  control.Consent
		answer string
		agreed bool
	}{
		{control.Loss, "y", true}, {control.Loss, " YES ", true}, {control.Loss, "", false}, {control.Loss, "n", false},
		{control.Loss, "prod", false}, {control.Volumes, "prod", true}, {control.Volumes, "y", false},
		{control.Production, "y", false},
	} {
		keyboard, terminal, err := pty.Open()
		if err != nil {
			t.Skip(err)
		}
		var errs bytes.Buffer
		call := New(&control.Session{}, terminal, io.Discard, &errs)
		released := false
		if _, err := keyboard.WriteString(c.answer + "\n"); err != nil {
			t.Fatal(err)
		}
		asked, err := call.Session.Confirmer.Ask(control.Question{About: c.about, Site: "prod", Why: "why\n  lines",
			Plain: true,
			LetGo: func() { released = true }})
		if !asked || !released || (err == nil) != c.agreed || !strings.HasPrefix(errs.String(), "why\n  lines\n") {
			t.Errorf("%s, %q: asked %t, released %t, %v, %q", c.about, c.answer, asked, released, err, errs.String())
		}
		_, _ = keyboard.Close(), terminal.Close()
	}
}

// TestTell: only what was done on the way goes to standard output.
func TestTell(t *testing.T) {
	call, out, errs := newTestCall()
	list := problem.List{problem.New(problem.Failed, "one"), problem.New(problem.Failed, "two")}
	call.Session.Outcome("s", "done")
	call.Session.Notice("s", "odd")
	call.Session.Trouble("s", list)
	call.Session.Trouble("s", errors.New("bad"))
	if out.String() != "done.\n" || errs.String() != "orrery: odd.\norrery: one\norrery: two\norrery: bad\n" {
		t.Errorf("%q, %q", out.String(), errs.String())
	}
}

// TestPrintError: what several nodes or hosts have alike is printed once. For programs, each is listed.
func TestPrintError(t *testing.T) {
	var list problem.List
	for _, node := range []string{"cam1", "cam2", "cam3", "cam4"} {
		list = append(list, problem.New(problem.Failed, "no room").At("node "+node).Try("orrery logs %s", node))
	}
	err := errors.Join(errors.New("host sv1: silent"), list, errors.New("host sv2: silent"))
	var errs, out bytes.Buffer
	PrintError(&errs, err)
	if want := "orrery: on hosts sv1, sv2: silent\norrery: on cam1, cam2 and 2 more: no room (orrery logs NODE)\n"; errs.
		String() != want {
		t.Errorf("%q", errs.String())
	}
	reply.New(&out, io.Discard).Finish(err)
	if n := strings.Count(out.String(), `"what"`); n != 6 {
		t.Errorf("%d errors: %s", n, out.String())
	}
}
