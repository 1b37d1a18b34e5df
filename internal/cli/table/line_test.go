package table

import (
	"os"
	"strings"
	"testing"

	"orrery/internal/cli/screen"
	"orrery/internal/control/status"
	"orrery/test/need"
)

// TestColours: on a terminal, health and remarks are coloured, and without colours the lines are the same.
func TestColours(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	rows := []status.Node{
		{Node: "db", Host: "sv1", State: "running", Health: status.Unhealthy, Detail: "refused\x1b[2J"},
		{Node: "web", Host: "sv1", State: "running", Health: status.Healthy, Roles: []string{"a"}},
		{Node: "old", Host: "sv1", State: "running", Health: status.Healthy, Stale: true},
		{Node: "gone", Host: "sv1", State: status.Absent, Health: "-"},
		{Node: "off", Host: "sv1", State: "stopped", Health: "off"},
	}
	show := func(width int) string {
		return need.OnScreen(t, func(terminal *os.File) {
			if err := Nodes(screen.Escaped(terminal), rows, false, width); err != nil {
				t.Error(err)
			}
		})
	}
	sent := show(80)
	for _, want := range []string{"\x1b[31munhealthy\x1b[0m", "\x1b[32mhealthy\x1b[0m", "\x1b[2mhealthy\x1b[",
		"\x1b[31mabsent\x1b[0m", "\x1b[31mdb: refused\\x1b[2J\x1b[0m", " off\n"} {
		if !strings.Contains(sent, want) {
			t.Errorf("%q is not in %q", want, sent)
		}
	}
	const narrow = "NODE  ID  H…\ndb    0   s…\nweb   0   s…\nold   0   s…\ngone  0   s…\noff   0   s…\n" +
		"\x1b[31mdb: refused…\x1b[0m\n"
	if cut := show(12); cut != narrow {
		t.Errorf("narrow: %q", cut)
	}
	t.Setenv("NO_COLOR", "1")
	if plain := show(80); strings.Contains(plain, "\x1b") || !strings.Contains(plain, "db    0   sv1   running  unhealthy\n") {
		t.Errorf("without colours: %q", plain)
	}
}
