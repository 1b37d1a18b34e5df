package nodes

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"orrery/internal/control"
	"orrery/internal/host"
)

// A talker is a node that prints a text, whatever it is asked.
type talker struct {
	host.Runner
	text string
	args []string // of the last command
}

func (n *talker) Run(_ context.Context, c host.Command) error {
	n.args = c.Args
	_, err := io.WriteString(c.Stdout, n.text)
	return err
}

// TestGrep: only matching lines are printed, without headings. A line that never ends is searched in
// bounded pieces, and the last line needs no end.
func TestGrep(t *testing.T) {
	endless := strings.Repeat("x", 5*maxSearchedBytes)
	for _, test := range []struct{ pattern, text, want string }{
		{"b+$", "abb\nbc\nab", "abb\nab\n"},
		{"^b", "abb\nbc\n\nb", "bc\nb\n"},
		{"nothing", "abb\nbc\n", ""},
		{"y$", endless + "y\nz\n", "y\n"},
		{"^$", "a\n\n", "\n"},
		{"\u00e9", "\xff\xe9\n\u00e9t\u00e9\n", "\u00e9t\u00e9\n"},
	} {
		var out bytes.Buffer
		node := &talker{text: test.text}
		o := LogOptions{Since: time.Minute, Lines: -1, Grep: regexp.MustCompile(test.pattern)}
		if err := printLogs(t.Context(), &control.Session{}, nil, "web", node, o, &out, io.Discard); err != nil ||
			out.String() != test.want {
			t.Errorf("%s: %.80q, %v", test.pattern, out.String(), err)
		}
	}
}

// TestSince: with a time, only the journal is read, from that time on by the node's clock.
func TestSince(t *testing.T) {
	var out bytes.Buffer
	node := &talker{text: "line\n"}
	o := LogOptions{Since: 10 * time.Minute, Lines: -1, Units: []string{"web.service"}}
	if err := printLogs(t.Context(), &control.Session{}, nil, "web", node, o, &out, io.Discard); err != nil ||
		out.String() != "==> journal of node web\nline\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	const want = "journalctl --no-pager --lines all --since=-600000000us --unit web.service"
	if got := strings.Join(node.args, " "); got != want {
		t.Errorf("the command is %s", got)
	}
	o = LogOptions{Follow: true, Lines: 0}
	if got := strings.Join(o.journalctl(), " "); got != "journalctl --no-pager --lines 0 --follow" {
		t.Errorf("the command is %s", got)
	}
}
