package remote

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/transport/transfer"
)

// TestFault: an error is the same on the other side. Whatever fault a helper sends, it is not taken
// for success.
func TestFault(t *testing.T) {
	for text, want := range map[string]int{
		`{"problems":[{"kind":5,"what":"held"}]}`:                           int(problem.Locked),
		`{"problems":[{"kind":130,"what":"Ctrl-C"}]}`:                       int(problem.Interrupted),
		`{"problems":[{"kind":0,"what":"fine"}]}`:                           int(problem.Failed),
		`{"problems":[{"kind":256,"what":"fine"}]}`:                         int(problem.Failed),
		`{"problems":[{"kind":-1,"what":"fine"}]}`:                          int(problem.Failed),
		`{"problems":[{"kind":10,"what":"fine"},{"kind":0,"what":"fine"}]}`: int(problem.Failed),
		`{"problems":[]}`: int(problem.Failed),
		`{}`:              int(problem.Failed),
	} {
		var f wireError
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			t.Fatal(err)
		}
		if got := problem.ExitCode(f.toError()); got != want {
			t.Errorf("%s: exit status %d, want %d", text, got, want)
		}
	}
	for _, err := range []*host.RunError{{Place: "db", Command: []string{"false"}, Status: 1},
		{Place: "db", Command: []string{"x"}, Status: -1, Err: errors.New("killed")}} {
		got := toWireError(err).toError()
		var run *host.RunError
		if !errors.As(got, &run) || got.Error() != err.Error() || (run.Err == nil) != (err.Err == nil) {
			t.Errorf("%v became %v", err, got)
		}
	}
}

// TestFullThere: if the disk of the remote host is full, the problem names the host and a cure.
// Other errors stay as they are.
func TestFullThere(t *testing.T) {
	full := &fs.PathError{Op: "mkdir", Path: "/var/lib/orrery/sites/s", Err: unix.ENOSPC}
	l := &Link{name: "sv2"}
	for what, err := range map[string]error{
		"plain":        full,
		"with a cause": problem.New(problem.Failed, "the journal cannot be written").Because(full),
		"beside other": errors.Join(errors.New("something else"), full),
	} {
		got := l.withHostName(toWireError(err).toError())
		if text := got.Error(); !strings.Contains(text, "host sv2: its disk is full: ") ||
			!strings.Contains(text, "/var/lib/orrery/sites/s") || !strings.Contains(text, "make room there") {
			t.Errorf("%s: %s", what, text)
		}
		all := problem.All(got)
		if p := all[len(all)-1]; p.Kind != problem.Unable {
			t.Errorf("%s: the kind is %d", what, p.Kind)
		}
		if len(all) == 2 && strings.Contains(all[0].Error(), "full") {
			t.Errorf("%s: it is said of another, too: %v", what, all[0])
		}
	}
	cured := problem.New(problem.Unable, "no room for a layer").Because(full).Try("image gc")
	if got := toWireError(cured).toError().Error(); strings.Contains(got, "its disk is full") {
		t.Errorf("what has a cure is %s", got)
	}
}

// TestAbsentThere: fs.ErrNotExist of a remote host is recognised, and the error names the file and
// its purpose, however many hosts it has passed.
func TestAbsentThere(t *testing.T) {
	absent := &fs.PathError{Op: "open", Path: "/etc/orrery/token", Err: fs.ErrNotExist}
	for what, err := range map[string]error{
		"plain": absent,
		"of a secret": problem.New(problem.Mistake, "secret token cannot be read").At("/etc/orrery/token").Because(absent).
			Try("put it there"),
		"of several": problem.List{problem.New(problem.Mistake, "secret token cannot be read").Because(absent),
			problem.New(problem.Unable, "no room")},
		"of a run": &host.RunError{Place: "web1", Command: []string{"cat"}, Status: -1, Err: absent},
		"of a lane": problem.New(problem.Failed, "host sv3: /etc/orrery/token").
			Because(errors.Join(transfer.ErrConnectionLost, fs.ErrNotExist)),
	} {
		got := err
		for range 3 {
			got = toWireError(got).toError()
		}
		if errors.Is(got, fs.ErrNotExist) != errors.Is(err, fs.ErrNotExist) ||
			errors.Is(got, transfer.ErrConnectionLost) != errors.Is(err, transfer.ErrConnectionLost) {
			t.Errorf("%s: it has become %#v", what, got)
		}
		if got.Error() != err.Error() || problem.ExitCode(got) != problem.ExitCode(err) {
			t.Errorf("%s: %v became %v", what, err, got)
		}
		l := &Link{name: "sv2"}
		if text := l.withHostName(got).Error(); !strings.Contains(text, "/etc/orrery/token") && what != "of a run" {
			t.Errorf("%s: %s", what, text)
		}
	}
	if err := (&wireError{Gone: true}).toError(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing else is said: %v", err)
	}
}
