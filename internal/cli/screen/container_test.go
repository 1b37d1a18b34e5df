package screen

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"orrery/internal/plan"
)

// behind is a terminal behind another writer.
type behind struct{ terminal *os.File }

func (b behind) Write(p []byte) (int, error) { return b.terminal.Write(p) }
func (b behind) Fd() uintptr                 { return b.terminal.Fd() }

// TestBarsBehind: a terminal behind another writer is recognized, has its width, and shows bars.
func TestBarsBehind(t *testing.T) {
	t.Setenv("TERM", "xterm")
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	if err := pty.Setsize(ours, &pty.Winsize{Rows: 24, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	out := behind{theirs}
	if Width(out) != 100 {
		t.Errorf("its width is %d", Width(out))
	}
	shown := make(chan string)
	go func() {
		text, _ := io.ReadAll(ours) // it ends with an error when the other side is closed
		shown <- string(text)
	}()
	step := &plan.Step{Kind: plan.StartNode, Subject: "web"}
	bars := NewProgress(out, &plan.Plan{Site: "karoo", Steps: []*plan.Step{step}},
		func(*plan.Step) time.Duration { return 0 })
	bars.Begin(step)
	bars.Waits(step, "waits for the networks")
	time.Sleep(250 * time.Millisecond) // time for two frames
	bars.End(step, nil)
	bars.Close()
	theirs.Close()
	text := <-shown
	for _, want := range []string{"karoo 0/1 [", "karoo 1/1 [=", "web", "waits for the networks", "\x1b["} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
}
