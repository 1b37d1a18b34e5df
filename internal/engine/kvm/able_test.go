package kvm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// TestTooOld: the engine reports a QEMU that is too old, with the cure, before it creates anything
// of a machine. Capabilities starts no process.
func TestTooOld(t *testing.T) {
	dir := t.TempDir()
	asked := filepath.Join(dir, "asked")
	if err := os.WriteFile(filepath.Join(dir, "qemu-system-x86_64"),
		[]byte("#!/bin/sh\necho >>"+asked+"; echo QEMU emulator version 5.2.0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	e := New(host.Dirs{State: filepath.Join(dir, "state"), Run: filepath.Join(dir, "run")},
		image.Open(filepath.Join(dir, "state")))
	trials := 0
	e.accel = func() (string, error) { trials++; return observe.TCG, errors.New("not here") }

	e.Capabilities()
	if _, err := os.Stat(asked); err == nil || trials != 0 {
		t.Errorf("what it can do was asked of QEMU (%v) and of KVM (%d times)", err == nil, trials)
	}
	for range 2 {
		if can := engine.ProbedCapabilities(t.Context(), e); !strings.Contains(can.Unable.What,
			"QEMU 5.2.0 is older than 6.2") ||
			can.Unable.Cure == "" || trials != 0 {
			t.Errorf("%+v", can)
		}
	}
	n := &spec.Node{Site: "s", Name: "n", ID: 101, Engine: Name}
	ref := engine.RefOf(n)
	if err := os.MkdirAll(e.Dir(ref).Path(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := host.WriteJSON(e.Dir(ref).File("node.json"), 0o600, n); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), ref); problem.ExitCode(err) != int(problem.Unable) ||
		!strings.Contains(err.Error(), "older than 6.2 (install a newer one") {
		t.Error(err)
	}
	if text, _ := os.ReadFile(asked); len(text) != 1 {
		t.Errorf("QEMU was asked %d times", len(text))
	}
}
