package nodes

import (
	"context"
	"io"
	"io/fs"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// A paper is a console with printed text.
type paper string

func (p paper) Open(context.Context, host.Holder) (io.ReadWriteCloser, error) { return nil, io.EOF }

func (p paper) Printed() ([]byte, error) {
	if p == "" {
		return nil, fs.ErrNotExist
	}
	return []byte(p), nil
}

// TestConsole: the last printed lines are returned whole. The console of a node that does not run
// offers nothing else.
func TestConsole(t *testing.T) {
	c := &Console{paper("one\r\ntwo\r\n\r\nlogin: "), "db", false}
	for lines, want := range map[int]string{0: "", 1: "login: \n", 3: "two\n\nlogin: \n", 4: "one\ntwo\n\nlogin: \n",
		1 << 40: "one\ntwo\n\nlogin: \n"} {
		if got, err := c.LastLines(lines); got != want || err != nil {
			t.Errorf("%d: %q, %v", lines, got, err)
		}
	}
	if _, err := c.Attach(t.Context(), host.Holder{}); problem.ExitCode(err) != int(problem.Failed) ||
		!strings.Contains(err.Error(), "orrery console --log db") {
		t.Error(err)
	}
	c.Runs = true
	if _, err := c.Attach(t.Context(), host.Holder{}); err != io.EOF { //nolint:errorlint // it is passed on
		t.Error(err)
	}
	c.Console = paper("")
	if _, err := c.LastLines(1); problem.ExitCode(err) != int(problem.Failed) ||
		!strings.Contains(err.Error(), "has never run") {
		t.Error(err)
	}
}
