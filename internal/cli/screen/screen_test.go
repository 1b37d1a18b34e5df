package screen

import (
	"os"
	"strings"
	"testing"
	"time"

	"orrery/internal/plan"
	"orrery/test/need"
)

// TestProgressOnScreen: details of steps are made printable in bars, because they may come from a
// node.
func TestProgressOnScreen(t *testing.T) {
	t.Setenv("TERM", "xterm")
	sent := need.OnScreen(t, func(terminal *os.File) {
		s := &plan.Step{N: 0, Kind: plan.ConfigureNode, Subject: "n"}
		took := func(*plan.Step) time.Duration { return 70 * time.Second }
		watch := NewProgress(Escaped(terminal), &plan.Plan{Site: "s", Steps: []*plan.Step{s}}, took)
		if _, ok := watch.(*bars); !ok {
			t.Error("there are no bars on a terminal")
		}
		watch.Begin(s)
		watch.Detail(s, "\x1b]0;title\x07")
		time.Sleep(300 * time.Millisecond)
		watch.End(s, nil)
		watch.Close()
	})
	if strings.Contains(sent, "\x1b]0;") || strings.Contains(sent, "\x07") {
		t.Errorf("the terminal is sent %q", sent)
	}
	if !strings.Contains(sent, "about 70 s left") {
		t.Errorf("no estimate in %q", sent)
	}
}
