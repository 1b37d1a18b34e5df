package report

import (
	"io"
	"strings"
	"testing"

	"orrery/internal/problem"
)

// withMachine returns a run on a host that supports the setting kvm.
func withMachine(t *testing.T, slow bool) *Report {
	t.Helper()
	s := simulate(3)
	for i := range s.head.Settings {
		if setting := &s.head.Settings[i]; setting.Name == "kvm" {
			setting.Missing, setting.Nodes, setting.Emulated = "", []string{"kvm"}, slow
		}
	}
	s.cost["kvm"] = map[string]float64{"capture": 0.1, "net": 0.2, "micro": 9, "disk": 3}
	return analysed(t, s)
}

// TestEmulated: every row, chart and export marks emulated results, without exception.
func TestEmulated(t *testing.T) {
	r := withMachine(t, true)
	cells := 0
	for _, f := range r.Tests.Rows() {
		for _, c := range f.Cells {
			if kvm := strings.HasPrefix(c.Setting, "kvm"); kvm != c.Emulated || kvm && c.Setting != "kvm (emulated)" {
				t.Errorf("%s: a cell of %q, emulated %t", f.Name, c.Setting, c.Emulated)
			} else if kvm && c.Summary != nil {
				cells++
			}
		}
	}
	if cells == 0 {
		t.Fatal("nothing was measured in it")
	}
	for name, write := range map[string]func(io.Writer) error{
		"text": r.Text, "HTML": r.HTML, "Markdown": r.Markdown, "CSV": r.CSV, "JSON": r.JSON} {
		told := text(t, write)
		told = strings.ReplaceAll(told, "orvkvm", "") // a link of the host
		told = strings.ReplaceAll(told, "processors used by kvm (emulated)", "")
		told = strings.Replace(told, `     "kvm"`, "", 1) // the name of the node in JSON
		all, marked := strings.Count(told, "kvm"), strings.Count(told, "kvm (emulated)")
		if marked == 0 || all != marked {
			for _, part := range strings.Split(strings.ReplaceAll(told, "kvm (emulated)", ""), "kvm")[1:] {
				t.Logf("after kvm: %.60s", part)
			}
			t.Errorf("%s: kvm is told %d times, and %d times that it is emulated", name, all, marked)
		}
	}
	if rows := strings.Count(text(t, r.CSV), ",emulated\n"); rows < cells {
		t.Errorf("the last column of report.csv says so in %d rows of %d", rows, cells)
	}
	if r = withMachine(t, false); strings.Contains(text(t, r.Text), "emulated") {
		t.Error("what ran on the processor itself is told as emulated")
	}
}

// TestComparable: emulated results cannot be compared with others.
func TestComparable(t *testing.T) {
	slow, fast, none := withMachine(t, true), withMachine(t, false), analysed(t, simulate(4))
	for _, pair := range [][2]*Report{{slow, slow}, {fast, fast}, {none, none}, {slow, none}, {none, fast}} {
		if err := Comparable(pair[0], pair[1]); err != nil {
			t.Error(err)
		}
	}
	for _, pair := range [][2]*Report{{slow, fast}, {fast, slow}} {
		err := Comparable(pair[0], pair[1])
		if problem.ExitCode(err) != int(problem.Mistake) ||
			!strings.Contains(err.Error(), "setting kvm was emulated in software") {
			t.Error(err)
		}
	}
	if c := compareTwo(slow, slow); len(c.Rows) == 0 || len(c.Only) > 0 {
		t.Errorf("%d rows, only in one: %q", len(c.Rows), c.Only)
	}
}
