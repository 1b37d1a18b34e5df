package screen

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"orrery/test/need"
)

// TestPaint: on a terminal, texts have the colour of their style, and Orrery's colours alone are sent as they
// are. There are none with NO_COLOR, on a simple terminal, and elsewhere.
func TestPaint(t *testing.T) {
	paint := func(no, term string) string {
		t.Setenv("NO_COLOR", no)
		t.Setenv("TERM", term)
		return need.OnScreen(t, func(terminal *os.File) {
			w := Escaped(terminal)
			Paint(w, "red\x1b[2J", Bad)
			Paint(w, " plain\x1b[2J", Plain)
			Paint(w, "", Good)
			fmt.Fprintln(w)
		})
	}
	const plain = `red\x1b[2J plain\x1b[2J`
	for _, c := range []struct{ no, term, want string }{
		{"", "xterm", "\x1b[31mred\\x1b[2J\x1b[0m plain\\x1b[2J"}, {"", "", "\x1b[31mred\\x1b[2J\x1b[0m plain\\x1b[2J"},
		{"1", "xterm", plain}, {"", "dumb", plain},
	} {
		if sent := strings.TrimRight(paint(c.no, c.term), "\r\n"); sent != c.want {
			t.Errorf("NO_COLOR=%s TERM=%s: the terminal is sent %q", c.no, c.term, sent)
		}
	}
	var out bytes.Buffer
	Paint(&out, "red", Bad)
	if out.String() != "red" {
		t.Errorf("a pipe is sent %q", out.String())
	}
}

// TestCanvas: a canvas for a terminal keeps colours and nothing else of escape sequences, and one for
// anything else has no colours.
func TestCanvas(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	var lines []string
	draw := func(c *Canvas) {
		Paint(c, "ok", Good)
		fmt.Fprint(c, "\x1b[2J\n")
		Paint(c, "old\x07", Faint)
		fmt.Fprintln(c)
		lines = c.Lines()
	}
	need.OnScreen(t, func(terminal *os.File) { draw(NewCanvas(Escaped(terminal))) })
	if len(lines) != 2 || lines[0] != "\x1b[32mok\x1b[0m\\x1b[2J" || !strings.HasPrefix(lines[1], "\x1b[2mold\\x07\x1b[") {
		t.Errorf("%q", lines)
	}
	draw(NewCanvas(&bytes.Buffer{}))
	if strings.Join(lines, "|") != `ok\x1b[2J|old\x07` {
		t.Errorf("%q", lines)
	}
}

// TestTruncatePainted: colours take no columns, and do not go on after a cut.
func TestTruncatePainted(t *testing.T) {
	const painted = "a\x1b[32mbcé\x1b[0m"
	for width, want := range map[int]string{0: painted, 4: painted, 5: painted, 3: "a\x1b[32mb…\x1b[0m", 1: "…\x1b[0m"} {
		if got := truncatePainted(painted, width); got != want {
			t.Errorf("%d columns: %q", width, got)
		}
	}
	if got := truncatePainted("abcd", 3); got != "ab…" {
		t.Errorf("%q", got)
	}
}
