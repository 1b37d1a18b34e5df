package local

import (
	"os"
	"path/filepath"
	"testing"

	"orrery/internal/host"
)

// TestSweep: the next holder of the lock of a site removes what a killed build or snapshot left,
// even after a power cut.
func TestSweep(t *testing.T) {
	state := t.TempDir()
	var left []string
	for _, dir := range []string{"build/0123456789abcdef/rootfs", "store/.staging/0123456789abcdef/tree/etc",
		"store/fedcba9876543210/tree", "sites/karoo/snapshots/.20260730-120000-new/nodes"} {
		if err := os.MkdirAll(filepath.Join(state, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		left = append(left, filepath.Join(state, dir))
	}
	h := ThisMachine("local", "karoo", host.Dirs{State: state, Run: t.TempDir()}, nil, nil)
	if err := h.Runs.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, dir := range left {
		if _, err := os.Lstat(filepath.Dir(dir)); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}
