package table

import (
	"strings"
	"testing"

	"orrery/internal/journal"
)

// TestCutOff checks that a run that was cut off says so, and one that goes on too.
func TestCutOff(t *testing.T) {
	var out strings.Builder
	Journal(&out, []journal.Entry{
		{Kind: "begin", Who: "ada", Command: "orrery up", State: journal.Killed},
		{Kind: "begin", Who: "ada", Command: "orrery down", State: journal.Running},
		{Kind: "begin", Who: "ada", Command: "orrery plan"},
	}, false)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 || !strings.Contains(lines[1], "did not end: killed") ||
		!strings.Contains(lines[3], "still running") {
		t.Errorf("it prints\n%s", out.String())
	}
}

// TestJournal: each line names its hosts, and text in entries cannot be mistaken for a line.
func TestJournal(t *testing.T) {
	var out strings.Builder
	on := []string{"sv1", "sv2"}
	Journal(&out, []journal.Entry{
		{Kind: "begin", Who: "ada\n2020", Command: "orrery up", Hosts: on},
		{Kind: "step", Step: "node a\nforged: create", Result: "done", Hosts: on[:1]},
		{Kind: "step", Step: "node b\nforged: create", Result: "no room\nforged", Hosts: on[1:]},
		{Kind: "end", Result: "it\nfailed", Hosts: on},
	}, false)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 7 {
		t.Fatalf("it prints\n%s", out.String())
	}
	for i, want := range []string{"  sv1, sv2  ada", "    2020: orrery up", "  sv2    node b",
		"    forged: create: no room", "    forged (0.00 s)", "  sv1, sv2  ended after 0.0 s: it", "    failed"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d is %q and has no %q", i, lines[i], want)
		}
	}
}
