package kvm

import (
	"os"
	"path/filepath"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/host/pci"
	"orrery/internal/image"
)

// TestSweepLent: the next run of any command returns a PCI function to the host whose machine's
// QEMU was killed.
func TestSweepLent(t *testing.T) {
	dir := t.TempDir()
	old := pci.Local
	defer func() { pci.Local = old }()
	pci.Local.Sys, pci.Local.Loans = filepath.Join(dir, "sys"), filepath.Join(dir, "run")
	given := ""
	pci.Local.Order = func(file, _ string) error { given = file; return nil }
	const address = "0000:00:1c.0"
	must(t, os.MkdirAll(filepath.Join(pci.Local.Sys, "bus/pci/devices", address), 0o755))
	must(t, os.MkdirAll(pci.Local.Loans, 0o700))
	loan := filepath.Join(pci.Local.Loans, address)
	must(t, os.WriteFile(loan, []byte(`{"holder": "it-swept/7"}`), 0o600))

	e := New(host.Dirs{State: filepath.Join(dir, "state"), Run: filepath.Join(dir, "run")}, image.Open(dir))
	must(t, e.sweep(t.Context(), e.machine(engine.Ref{Site: "it-swept", Name: "dead", ID: 7})))
	if _, err := os.Lstat(loan); err == nil || given == "" {
		t.Errorf("it is still lent: %v, the kernel was told %q", err, given)
	}
	must(t, os.WriteFile(loan, []byte(`{"holder": "it-swept/8"}`), 0o600))
	must(t, e.sweep(t.Context(), e.machine(engine.Ref{Site: "it-swept", Name: "dead", ID: 7})))
	if _, err := os.Lstat(loan); err != nil {
		t.Errorf("another's is taken away: %v", err)
	}
}
