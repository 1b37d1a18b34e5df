package nodeverb

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/cli/verb"
	"orrery/internal/problem"
)

// A film is a screen that sends a greeting.
type film struct{ broken bool }

func (f film) Open(context.Context) (net.Conn, error) {
	if f.broken {
		return nil, problem.New(problem.Failed, "the screen does not answer")
	}
	ours, theirs := net.Pipe()
	go func() {
		_, _ = io.WriteString(theirs, "RFB 003.008\n")
		theirs.Close()
	}()
	return ours, nil
}

func (film) Picture(context.Context) ([]byte, error) { return []byte("\x89PNG"), nil }

// TestServeScreen: viewers are connected to the screen until the command is interrupted, and then
// nothing is left. A screen that does not answer is reported before that.
func TestServeScreen(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	from, to := io.Pipe()
	call := &verb.Call{Output: verb.Output{Out: to, Err: io.Discard}}
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- serveScreen(ctx, call.Output, "win", film{}) }()
	path, err := bufio.NewReader(from).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	path = strings.TrimSpace(path)
	for range 2 {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(conn); err != nil || string(text) != "RFB 003.008\n" {
			t.Errorf("%q, %v", text, err)
		}
		conn.Close()
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Errorf("%s is left", path)
	}
	if err := serveScreen(t.Context(), call.Output, "win", film{broken: true}); err == nil ||
		!strings.Contains(err.Error(), "does not answer") {
		t.Error(err)
	}
}

// TestPaint: a picture is written to a file that only the caller can read, or to standard output.
func TestPaint(t *testing.T) {
	var out bytes.Buffer
	call := &verb.Call{Output: verb.Output{Out: &out}}
	file := filepath.Join(t.TempDir(), "win.png")
	if err := errors.Join(writePicture(t.Context(), call.Out, film{}, file),
		writePicture(t.Context(), call.Out, film{}, "-")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "\x89PNG" || out.String() != "\x89PNG" {
		t.Errorf("%q, %v; %q", text, err, out.String())
	}
}
