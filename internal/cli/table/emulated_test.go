package table

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"orrery/internal/control/status"
	"orrery/internal/observe"
)

// TestEmulated: each host has one warning, however many of its virtual machines and their releases
// are emulated.
func TestEmulated(t *testing.T) {
	rows := []status.Node{
		{Node: "a", Host: "sv1", Accel: observe.TCG}, {Node: "a", Host: "sv1", Accel: observe.TCG, Quarantine: true},
		{Node: "b", Host: "sv1", Accel: observe.TCG},
		{Node: "c", Host: "sv1"}, {Node: "d", Host: "sv2", Accel: observe.KVM},
	}
	var out bytes.Buffer
	Emulated(&out, rows)
	const want = "Warning: on host sv1 virtual machines run in software emulation, many times slower than containers: a, b; `orrery doctor` shows why.\n"
	if out.String() != want {
		t.Errorf("%q", out.String())
	}
}

// TestDoubt: if it is unknown whether a machine has a network, the list says so, with the cure.
func TestDoubt(t *testing.T) {
	text := strings.Join(plainLines([]status.Node{{Node: "db", Doubt: []string{"data"}}}, false, 0, time.Now()), "\n")
	if !strings.Contains(text, "db: may or may not have the network data") || !strings.Contains(text, "orrery up db") {
		t.Error(text)
	}
}

// TestMishap: if the kernel of a machine has panicked, or a node has lost a link, the list says so,
// with the cure. Output of a guest is shown on one line, without control characters.
func TestMishap(t *testing.T) {
	rows := []status.Node{
		{Node: "db", Panic: "Kernel panic - not syncing: no root\x1b[2J\ntrace"}, {Node: "web", Unlinked: []string{"lan"}},
	}
	text := strings.Join(plainLines(rows, false, 0, time.Now()), "\n")
	for _, want := range []string{
		"\ndb: its kernel has panicked (orrery restart db): Kernel panic - not syncing: no root", " trace\n",
		"\nweb: has lost its link to lan: orrery up web",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
}

// TestOutdated: if programs of a machine were replaced, the list says so, with the cure.
func TestOutdated(t *testing.T) {
	rows := []status.Node{{Node: "db", Outdated: []string{"virtiofsd"}}}
	text := strings.Join(plainLines(rows, false, 0, time.Now()), "\n")
	if !strings.Contains(text, "db: runs in programs that have been replaced on its host (virtiofsd): orrery renew db") {
		t.Error(text)
	}
}
