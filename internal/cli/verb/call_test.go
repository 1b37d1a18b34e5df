package verb

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

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
		asked, err := call.Session.Asker.Ask(control.Question{About: about, Site: "prod"})
		if asked || (err == nil) != want || err != nil && !problem.Is(err, problem.Refused) {
			t.Errorf("%s: asked %t, %v", about, asked, err)
		}
	}
	if _, err := call.Session.Asker.Ask(control.Question{About: control.Production, Site: "other"}); err == nil {
		t.Error("one site's name agrees for another")
	}
	if errs.Len() > 0 {
		t.Errorf("asked where nobody sits: %s", errs.String())
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
