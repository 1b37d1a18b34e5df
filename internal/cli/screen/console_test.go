package screen

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"orrery/internal/host"
)

// TestConsole: what a node has changed on the terminal is reset when the user leaves, and no output
// of the node follows.
func TestConsole(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	keys, typed := io.Pipe()
	var shown bytes.Buffer
	go func() {
		_, _ = io.WriteString(far, "\x1b[?1049h\x1b[?25l\x1b[?1003h")
		_, _ = typed.Write([]byte{host.Escape})
	}()
	if ended, err := runConsole(t.Context(), &host.Terminal{Keys: keys, Screen: &shown}, near); ended || err != nil {
		t.Error(ended, err)
	}
	text, last := strings.CutSuffix(shown.String(), resetSequence)
	if !last || text != "\x1b[?1049h\x1b[?25l\x1b[?1003h" {
		t.Errorf("the terminal is sent %q", shown.String())
	}
	for _, undone := range []string{"\x1b[?1049l", "\x1b[?25h", "\x1b[?1003l"} {
		if !strings.Contains(resetSequence, undone) {
			t.Errorf("%q is not sent", undone)
		}
	}
}
