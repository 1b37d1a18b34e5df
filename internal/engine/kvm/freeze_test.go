package kvm

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/host"
)

// A monitored machine has a monitor that records its commands, and whether the machine was marked
// at each.
type monitored struct {
	machine
	mutex sync.Mutex
	told  []string
}

// monitors returns a machine whose monitor gets its answers from a function. It does not answer if
// the function returns "".
func monitors(t *testing.T, answer func(command string) string) *monitored {
	t.Helper()
	dirs := host.Dirs{State: t.TempDir(), Run: t.TempDir()}
	m := &monitored{machine: machine{Machine: vm.Machine{Dir: nodedir.Of(dirs, "karoo", 101), Run: t.TempDir()}}}
	must(t, os.MkdirAll(m.Path(), 0o700))
	serveMonitor(t, m.Run, func(command string, _ map[string]any) (string, string, bool) {
		mark := ""
		if _, err := os.Lstat(m.haltedFile()); err == nil {
			mark = ", marked"
		}
		m.mutex.Lock()
		m.told = append(m.told, command+mark)
		m.mutex.Unlock()
		says := answer(command)
		if says != "" {
			says = `"return":` + says
		}
		return says, "", false
	})
	return m
}

func (m *monitored) wants(t *testing.T, marked bool, told ...string) {
	t.Helper()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !slices.Equal(m.told, told) {
		t.Errorf("it was told %q, want %q", m.told, told)
	}
	if _, err := os.Lstat(m.haltedFile()); (err == nil) != marked {
		t.Errorf("it is marked: %v", err)
	}
	if m.frozenOrHalted() != marked {
		t.Errorf("it stands still: %t", !marked)
	}
}

// TestPause: a machine is marked before its processors are stopped, and stays marked if the result
// is unknown. It is not marked if its monitor could not be reached, or if it had stopped before for
// lack of room, so that nothing resumes it because of the mark.
func TestPause(t *testing.T) {
	state := func(status string) func(string) string {
		return func(command string) string {
			if command == "query-status" {
				return `{"status":"` + status + `","running":false}`
			}
			return "{}"
		}
	}
	m := monitors(t, state("paused"))
	must(t, m.pause(t.Context()))
	m.wants(t, true, "stop, marked", "query-status, marked")
	must(t, m.pause(t.Context())) // after a run that was killed
	m.wants(t, true, "stop, marked", "query-status, marked", "stop, marked", "query-status, marked")

	m = monitors(t, state("io-error"))
	must(t, m.pause(t.Context()))
	m.wants(t, false, "stop, marked", "query-status, marked")

	ctx, cancel := context.WithCancel(t.Context())
	m = monitors(t, func(string) string { cancel(); return "" })
	if m.pause(ctx) == nil {
		t.Error("a monitor that does not answer has done it")
	}
	m.wants(t, true, "stop, marked")

	m = &monitored{machine: m.machine}
	m.Run = t.TempDir()
	must(t, os.Remove(m.haltedFile()))
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if m.pause(ctx) == nil {
		t.Error("a monitor that is not there has done it")
	}
	m.wants(t, false)
}

// TestGoOnEnded: if the machine has ended, its mark is removed.
func TestGoOnEnded(t *testing.T) {
	m := monitors(t, func(string) string { return "{}" })
	must(t, os.WriteFile(m.haltedFile(), nil, 0o600))
	must(t, m.startProcessors())
	m.wants(t, false)
}
