package cli

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"orrery/internal/cli/screen"
	"orrery/internal/cli/verb"
	"orrery/internal/text/sanitize"
	"orrery/test/need"
)

// hostile is output by which a node may try to deceive the user.
const hostile = "\x1b]0;title\x07\x1b[2J\u009b31m\u202edetrevni\xff"

func wantPlain(t *testing.T, sent string) {
	t.Helper()
	if sent != sanitize.Text(sent) {
		t.Errorf("the terminal is sent %q", sent)
	}
}

// TestErrorsOnScreen: names in errors are made printable on a terminal, and only Orrery's own word is coloured.
func TestErrorsOnScreen(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	sent := need.OnScreen(t, func(terminal *os.File) {
		status := Run([]string{"-C", t.TempDir() + "/" + hostile, "check"}, nil, strings.NewReader(""), terminal, terminal)
		if status == 0 {
			t.Error("a site was found")
		}
	})
	sent, coloured := strings.CutPrefix(sent, "\x1b[31morrery:\x1b[0m ")
	wantPlain(t, sent)
	if !coloured || !strings.Contains(sent, `\x1b[2J\u009b31m\u202edetrevni\xff`) {
		t.Errorf("the terminal is sent %q", sent)
	}
	var out bytes.Buffer
	verb.PrintError(screen.Escaped(&out), errors.New(hostile))
	if !strings.Contains(out.String(), hostile) {
		t.Errorf("a pipe is sent %q", out.String())
	}
}
