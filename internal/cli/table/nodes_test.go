package table

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"orrery/internal/apply"
	"orrery/internal/control/status"
	"orrery/internal/observe"
	"orrery/internal/site"
)

// plainLines returns the lines of the table without styles.
func plainLines(rows []status.Node, usage bool, width int, now time.Time) []string {
	var all []string
	for _, l := range styledLines(rows, usage, width, now) {
		all = append(all, l.String())
	}
	return all
}

var noon = time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC)

// twelve returns the rows of a site of twelve nodes, two of which are sick.
func twelve() []status.Node {
	var rows []status.Node
	for n := range 12 {
		r := status.Node{
			Node: fmt.Sprintf("receptor%d", n+1), ID: 101 + n, Host: "local", State: "running", Health: status.Healthy,
			HealthAt: noon.Add(-time.Duration(n) * 3 * time.Minute),
			Roles:    []string{"cam-base", "receptor", "digitiser"}, Networks: []string{"cam", "data"},
			Addresses: map[string]string{"cam": fmt.Sprintf("10.8.70.%d", 101+n), "data": fmt.Sprintf("10.8.71.%d", 101+n)},
		}
		switch n {
		case 4:
			r.State, r.Health, r.HealthAt = "stopped", "-", time.Time{}
		case 9:
			r.Health, r.Detail = status.Unhealthy,
				"role receptor: tcp 7147: dial tcp 127.0.0.1:7147: connect: connection refused, and more than goes onto one line of a terminal"
		}
		rows = append(rows, r)
	}
	return rows
}

// TestTableFits: twelve nodes fit on a terminal of 80 by 24 without wrapped lines, those not in
// their declared state first. Without a terminal nothing is cut.
func TestTableFits(t *testing.T) {
	all := &status.Status{Nodes: twelve()}
	all.UnhealthyFirst()
	shown := plainLines(all.Nodes, false, 80, noon)
	if len(shown) != 14 {
		t.Errorf("%d lines", len(shown))
	}
	for _, line := range shown {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	for i, want := range []string{"NODE", "receptor5 ", "receptor10 ", "receptor1 ", "receptor2 "} {
		if !strings.HasPrefix(shown[i], want) {
			t.Errorf("line %d is %q", i, shown[i])
		}
	}
	for _, want := range []string{"healthy now", "was healthy 3 min ago", "cam=10.8.70.1…", "…",
		"receptor10: role receptor: tcp 7147"} {
		if !strings.Contains(strings.Join(shown, ""), want) {
			t.Errorf("%q is not in\n%s", want, strings.Join(shown, ""))
		}
	}
	whole := strings.Join(plainLines(all.Nodes, false, 0, noon), "\n")
	if strings.Contains(whole, "…") || strings.Count(whole, "cam-base,receptor,digitiser\n") != 12 {
		t.Errorf("it is cut:\n%s", whole)
	}
	narrow := plainLines(all.Nodes, false, 20, noon)
	for _, line := range narrow {
		if utf8.RuneCountInString(line) > 20 {
			t.Errorf("%q", line)
		}
	}
}

// TestUsageFits: the usage of twelve nodes fits, too.
func TestUsageFits(t *testing.T) {
	rows := twelve()
	for i := range rows {
		rows[i].Usage = &apply.Usage{Processors: 1.5, Memory: 100 << 20, Pids: 40, Disk: 12 << 20, Volumes: 3 << 30,
			Limits: site.Limits{Cpus: 2, Memory: 256 << 20}}
	}
	rows[1].Usage = &apply.Usage{Processors: -1, Memory: -1, Pids: -1, Disk: -1}
	rows[2].Usage, rows[2].State, rows[2].Health = nil, "absent", "-"
	shown := plainLines(rows, true, 120, noon)
	if !strings.Contains(shown[1], "1.50 of 2") || !strings.Contains(shown[1], "100 of 256 ") ||
		!strings.Contains(shown[1], "3.0 GiB") {
		t.Errorf("%q", shown[1])
	}
	if strings.Contains(shown[2], " of ") {
		t.Errorf("%q", shown[2])
	}
	for i, line := range plainLines(rows, true, 80, noon) {
		if i < 13 && strings.Contains(line, "…") {
			t.Errorf("%q is cut", line)
		}
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("%q", line)
		}
	}
}

// TestWord: a health result shows its age.
func TestWord(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "now", -time.Hour: "now", 59 * time.Second: "59 s ago", 3*time.Minute + 59*time.Second: "3 min ago",
		47 * time.Hour: "47 h ago", 49 * time.Hour: "2 days ago",
	} {
		r := status.Node{Health: status.Healthy, HealthAt: noon.Add(-d)}
		if want = "healthy " + want; d > time.Minute {
			want = "was " + want
		}
		if got := health(r, noon); got != want {
			t.Errorf("%s: %q", d, got)
		}
	}
	for _, r := range []status.Node{{Health: "not proven", ProvenAt: noon}, {Health: "-"}, {Health: status.Healthy}} {
		if got := health(r, noon); got != r.Health {
			t.Errorf("%+v: %q", r, got)
		}
	}
	failed := status.Node{Health: status.Failed, HealthAt: noon.Add(-20 * time.Minute)}
	if got := health(failed, noon); got != "failed 20 min ago" {
		t.Errorf("%q", got)
	}
	if got := health(status.Node{Health: status.Drifted, Probed: true}, noon); got != "drifted now" {
		t.Errorf("%q", got)
	}
}

// TestPublishedLines: a URL where a browser can use one, below the table.
func TestPublishedLines(t *testing.T) {
	rows := twelve()[:1]
	rows[0].Published = []status.Published{
		{Ports: "tcp/8080", Node: "80", URL: "http://sv1:8080/"}, {Ports: "udp/53", Node: "53"},
		{Ports: "tcp/8000-8010", Node: "8000-8010", Address: "10.1.2.3"},
	}
	shown := strings.Join(plainLines(rows, false, 0, noon)[2:], "\n")
	if want := "receptor1: http://sv1:8080/ leads to its port 80\n" +
		"receptor1: port udp/53 of its host leads to its port 53\n" +
		"receptor1: port tcp/8000-8010 of 10.1.2.3 leads to its port 8000-8010"; shown != want {
		t.Errorf("it shows\n%s", shown)
	}
	if shown := plainLines(rows, true, 0, noon); len(shown) != 2 {
		t.Errorf("the usage shows %q", shown)
	}
}

// TestFound: what was found beside the declaration is shown: nodes that are not declared, addresses
// that differ, and why a step failed.
func TestFound(t *testing.T) {
	rows := []status.Node{
		{Node: "old", State: "running", Health: "-", Undeclared: true},
		{Node: "db", State: "running", Health: status.Failed, HealthAt: noon.Add(-12 * time.Minute),
			Failure: &status.Failure{See: "orrery logs db", StepFailure: observe.StepFailure{Step: "configure",
				At: noon.Add(-12 * time.Minute), Found: "step x\nfailed"}},
			Networks: []string{"lan"}, Addresses: map[string]string{"lan": "10.0.0.7"},
			AnswersAt: map[string]string{"lan": "10.0.0.6", "former": "10.1.0.6"}},
	}
	text := strings.Join(plainLines(rows, false, 0, noon), "\n")
	for _, want := range []string{"failed 12 min ago", "lan=10.0.0.7 (answers at 10.0.0.6) former=10.1.0.6 (not declared)",
		"old: is not in site.toml any more: orrery up destroys it",
		"db: configure failed at 2026-07-30 11:48:00 UTC (orrery logs db shows why): step x failed"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
