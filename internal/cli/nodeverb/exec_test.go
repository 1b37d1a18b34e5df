package nodeverb

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"orrery/internal/cli/screen"
	"orrery/internal/cli/verb"
	"orrery/internal/control/nodes"
	"orrery/internal/host"
	"orrery/internal/site"
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

// talker is a node that prints.
type talker struct {
	host.Runner
	text string
}

func (p talker) Run(_ context.Context, c host.Command) error {
	_, err := io.WriteString(c.Stdout, p.text)
	if err == nil && c.Args != nil {
		err = &host.RunError{Place: "n", Command: c.Args, Status: -1, Err: errors.New(hostile), Output: p.text}
	}
	return err
}

// sayAll makes nodes print as in exec.
func sayAll(t *testing.T, to verb.Output, of []*site.Node, runners map[string]host.Runner) {
	c := &nodes.Group{Nodes: of, Runners: runners, Parallel: 1}
	_, _ = c.RunShown(t.Context(), newPrefixed(to.Out, to.Err, of, false),
		func(ctx context.Context, _ int, in host.Runner, to nodes.NodeOutput) error {
			return in.Run(ctx, host.Command{Args: []string{"say"}, Stdout: to.Out()})
		})
}

// paper is a console with printed text.
type paper struct{ host.Console }

func (paper) Printed() ([]byte, error) { return []byte("\x1b[1mKernel panic\r\n" + hostile), nil }

// TestConsoleOnScreen: a terminal gets earlier output of a console in printable form unless the user
// wants it raw, and a pipe as it is.
//
// Promise (What others print and answer): Earlier output of a machine's console is text, except
// with `--raw`; a session's output ends, and its terminal settings are undone, when the user
// leaves; one user at a time has it. With host.TestConsole, host.TestConsoleEnds,
// cli/screen.TestConsole, engine/kvm.TestSerial, engine/xen.TestConsole.
func TestConsoleOnScreen(t *testing.T) {
	at := &nodes.Console{Console: paper{}, Node: "db"}
	print := func(out io.Writer) { _ = printLast(out, at, 10) }
	sent := need.OnScreen(t, func(terminal *os.File) { print(screen.Escaped(terminal)) })
	wantPlain(t, strings.ReplaceAll(sent, "\r\n", "\n"))
	if !strings.Contains(sent, `\x1b[1mKernel panic`) {
		t.Errorf("the terminal is sent %q", sent)
	}
	sent = need.OnScreen(t, func(terminal *os.File) {
		print(verb.Output{Out: screen.Escaped(terminal), Err: screen.Escaped(terminal)}.Raw(true).Out)
	})
	if !strings.Contains(sent, "\x1b[1mKernel panic") {
		t.Errorf("raw, the terminal is sent %q", sent)
	}
	var out bytes.Buffer
	if print(screen.Escaped(&out)); out.String() != "\x1b[1mKernel panic\n"+hostile+"\n" {
		t.Errorf("a pipe is sent %q", out.String())
	}
}

// TestExecOnScreen: the output of nodes in exec is made printable on a terminal. A pipe gets it
// unchanged.
func TestExecOnScreen(t *testing.T) {
	node := []*site.Node{{Name: "n"}}
	runners := map[string]host.Runner{"n": talker{text: hostile + "\nwhole\n"}}
	print := func(to verb.Output) { sayAll(t, to, node, runners) }
	sent := need.OnScreen(t, func(terminal *os.File) {
		print(verb.Output{Out: screen.Escaped(terminal), Err: screen.Escaped(terminal)})
	})
	wantPlain(t, sent)
	if !strings.HasPrefix(sent, "n | "+sanitize.Text(hostile)+"\nn | whole\n") {
		t.Errorf("the terminal is sent %q", sent)
	}
	sent = need.OnScreen(t, func(terminal *os.File) {
		print(verb.Output{Out: screen.Escaped(terminal), Err: screen.Escaped(terminal)}.Raw(true))
	})
	if !strings.Contains(sent, hostile) {
		t.Errorf("with --raw the terminal is sent %q", sent)
	}
	var out bytes.Buffer
	print(verb.Output{Out: screen.Escaped(&out), Err: io.Discard})
	if out.String() != "n | "+hostile+"\nn | whole\n" {
		t.Errorf("a pipe is sent %q", out.String())
	}
}

// gush is a node that prints without end, and never a whole line.
type gush struct {
	host.Runner
	size int
}

func (g gush) Run(_ context.Context, c host.Command) error {
	block := bytes.Repeat([]byte{'x'}, 32<<10)
	for range g.size / len(block) {
		if _, err := c.Stdout.Write(block); err != nil {
			return err
		}
	}
	return nil
}

// widest counts the bytes written to it, and records the size of the largest write.
type widest struct {
	sync.Mutex
	all, most int
	end       []byte
}

func (w *widest) Write(p []byte) (int, error) {
	w.Lock()
	defer w.Unlock()
	w.all, w.most, w.end = w.all+len(p), max(w.most, len(p)), append(w.end[:0], p[max(0, len(p)-30):]...)
	return len(p), nil
}

// TestExecEndlessLine: a line without end is printed in pieces, and not stored.
func TestExecEndlessLine(t *testing.T) {
	w := &widest{}
	size := need.Times(64<<20, 1<<30)
	sayAll(t, verb.Output{Out: w, Err: io.Discard}, []*site.Node{{Name: "n"}},
		map[string]host.Runner{"n": gush{size: size}})
	if w.all < size || w.most > 256<<10+100 {
		t.Errorf("%d bytes were printed, at most %d at once", w.all, w.most)
	}
}
