package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/site"
)

var noon = time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC)

// twelve gives the rows of a site of twelve nodes, of which two are sick.
func twelve() []control.NodeStatus {
	var rows []control.NodeStatus
	for n := range 12 {
		r := control.NodeStatus{
			Node: fmt.Sprintf("receptor%d", n+1), ID: 101 + n, Host: "local", State: "running", Health: control.Healthy, ProvenAt: noon.Add(-time.Duration(n) * 3 * time.Minute),
			Roles: []string{"cam-base", "receptor", "digitiser"}, Networks: []string{"cam", "data"},
			Addresses: map[string]string{"cam": fmt.Sprintf("10.8.70.%d", 101+n), "data": fmt.Sprintf("10.8.71.%d", 101+n)},
		}
		switch n {
		case 4:
			r.State, r.Health = "stopped", "-"
		case 9:
			r.Health, r.Detail = control.Unhealthy, "role receptor: tcp 7147: dial tcp 127.0.0.1:7147: connect: connection refused, and more than goes onto one line of a terminal"
		}
		rows = append(rows, r)
	}
	return rows
}

// TestTableFits: twelve nodes are shown on a terminal of 80 by 24, those first that are not as declared, and no line wraps; where there is no terminal
// nothing is cut.
func TestTableFits(t *testing.T) {
	all := &control.Status{Nodes: twelve()}
	all.SickFirst()
	lines := (&table{width: 80}).lines(all.Nodes, false, noon)
	if len(lines) != 14 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	for i, want := range []string{"NODE", "receptor5 ", "receptor10 ", "receptor1 ", "receptor2 "} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is %q", i, lines[i])
		}
	}
	for _, want := range []string{"healthy now", "healthy 3 min ago", "cam=10.8.70.101 dat…", "…", "receptor10: role receptor: tcp 7147"} {
		if !strings.Contains(strings.Join(lines, ""), want) {
			t.Errorf("%q is not in\n%s", want, strings.Join(lines, ""))
		}
	}
	whole := strings.Join((&table{}).lines(all.Nodes, false, noon), "")
	if strings.Contains(whole, "…") || strings.Count(whole, "cam-base,receptor,digitiser\n") != 12 {
		t.Errorf("it is cut:\n%s", whole)
	}
	narrow := (&table{width: 20}).lines(all.Nodes, false, noon)
	for _, line := range narrow {
		if utf8.RuneCountInString(line) > 21 {
			t.Errorf("%q", line)
		}
	}
}

// TestUsageFits: so is what twelve nodes use.
func TestUsageFits(t *testing.T) {
	rows := twelve()
	for i := range rows {
		rows[i].Usage = &apply.Usage{Processors: 1.5, Memory: 100 << 20, Pids: 40, Disk: 12 << 20, Volumes: 3 << 30, Limits: site.Limits{Cpus: 2, Memory: 256 << 20}}
	}
	rows[1].Usage = &apply.Usage{Processors: -1, Memory: -1, Pids: -1, Disk: -1}
	rows[2].Usage, rows[2].State, rows[2].Health = nil, "absent", "-"
	lines := (&table{width: 120}).lines(rows, true, noon)
	if !strings.Contains(lines[1], "1.50 of 2") || !strings.Contains(lines[1], "100 of 256 ") || !strings.Contains(lines[1], "3.0 GiB") {
		t.Errorf("%q", lines[1])
	}
	if strings.Contains(lines[2], " of ") {
		t.Errorf("%q", lines[2])
	}
	for i, line := range (&table{width: 80}).lines(rows, true, noon) {
		if i < 13 && strings.Contains(line, "…") {
			t.Errorf("%q is cut", line)
		}
		if utf8.RuneCountInString(line) > 81 {
			t.Errorf("%q", line)
		}
	}
}

// TestWord: a word about a node's health says how old it is.
func TestWord(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "now", -time.Hour: "now", 59 * time.Second: "59 s ago", 3*time.Minute + 59*time.Second: "3 min ago", 47 * time.Hour: "47 h ago", 49 * time.Hour: "2 days ago",
	} {
		r := row{control.NodeStatus{Health: control.Healthy, ProvenAt: noon.Add(-d)}}
		if got := r.word(noon); got != "healthy "+want {
			t.Errorf("%s: %q", d, got)
		}
	}
	for _, r := range []control.NodeStatus{{Health: "not proven", ProvenAt: noon}, {Health: "-"}, {Health: control.Healthy}} {
		if got := (row{r}).word(noon); got != r.Health {
			t.Errorf("%+v: %q", r, got)
		}
	}
	if got := (row{control.NodeStatus{Health: control.Drifted, Probed: true}}).word(noon); got != "drifted now" {
		t.Errorf("%q", got)
	}
}

// TestPager: what does not fit on a terminal can be moved into sight, below the heading, and nothing is drawn beyond its last line.
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
	shows(6, "line 23", "line 26") // the terminal is made smaller
	p.move("g")
	p.move("\x1b[A")
	shows(10, "line 1", "line 8")
	if got := p.show(31); len(got) != 31 || got[30] != "line 30" {
		t.Errorf("where all fits, %d lines are shown", len(got))
	}
	p.lines = p.lines[:3] // nodes went
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

// TestWidth: only a terminal has one.
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
	if got := widthOf(shown(theirs)); got != 77 {
		t.Errorf("%d columns", got)
	}
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if a, b := widthOf(file), widthOf(&bytes.Buffer{}); a != 0 || b != 0 {
		t.Errorf("%d and %d columns", a, b)
	}
}
