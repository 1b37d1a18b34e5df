package screen

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// TestPager: lines that do not fit on a terminal can be scrolled below the heading, and nothing is
// drawn after the last line.
func TestPager(t *testing.T) {
	p := pager{}
	for n := range 31 {
		p.lines = append(p.lines, fmt.Sprint("line ", n))
	}
	shows := func(height int, want ...string) {
		t.Helper()
		got := p.show(height)
		if len(got) != height || got[0] != "line 0" {
			t.Fatalf("shown is %q", got)
		}
		if got[1] != want[0] || got[height-2] != want[1] {
			t.Errorf("shown is %q", got)
		}
	}
	shows(10, "line 1", "line 8")
	if last := p.show(10)[9]; !strings.Contains(last, "1 to 8 of 30") {
		t.Errorf("the last line is %q", last)
	}
	p.move("\x1b[B")
	shows(10, "line 2", "line 9")
	p.move("\x1b[6~")
	shows(10, "line 10", "line 17")
	p.move("G")
	shows(10, "line 23", "line 30")
	p.move("\x1b[B")
	shows(10, "line 23", "line 30")
	shows(6, "line 23", "line 26") // the terminal became smaller
	p.move("g")
	p.move("\x1b[A")
	shows(10, "line 1", "line 8")
	if got := p.show(31); len(got) != 31 || got[30] != "line 30" {
		t.Errorf("where all fits, %d lines are shown", len(got))
	}
	p.lines = p.lines[:3] // some nodes are gone
	p.move("G")
	if got := p.show(10); len(got) != 3 {
		t.Errorf("%q", got)
	}
	p.lines = []string{strings.Repeat("x", 200)}
	if drawn := p.draw(80, 24); strings.Count(drawn, "x") != 79 || strings.Contains(drawn, "\n") {
		t.Errorf("%q", drawn)
	}
	for height := range 4 {
		if got := p.show(height); len(got) > max(height, 1) {
			t.Errorf("at a height of %d: %q", height, got)
		}
	}
}

// TestWidth: only a terminal has a width.
func TestWidth(t *testing.T) {
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer ours.Close()
	defer theirs.Close()
	t.Setenv("TERM", "xterm")
	if err := pty.Setsize(theirs, &pty.Winsize{Rows: 24, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	if got := Width(Escaped(theirs)); got != 77 {
		t.Errorf("%d columns", got)
	}
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if a, b := Width(file), Width(&bytes.Buffer{}); a != 0 || b != 0 {
		t.Errorf("%d and %d columns", a, b)
	}
}
