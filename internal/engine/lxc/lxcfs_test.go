package lxc

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestLXCFS: nodes see what lxcfs provides, and nothing of it where it does not run.
func TestLXCFS(t *testing.T) {
	old := lxcfsDir
	t.Cleanup(func() { lxcfsDir = old })
	lxcfsDir = t.TempDir()
	if got := lxcfsMounts(); len(got) > 0 {
		t.Errorf("without lxcfs: %q", got)
	}
	for _, file := range []string{"proc/meminfo", "proc/slabinfo"} {
		path := filepath.Join(lxcfsDir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(lxcfsDir, "sys/devices/system/cpu"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := []string{
		lxcfsDir + "/proc/meminfo proc/meminfo none bind,optional 0 0",
		lxcfsDir + "/sys/devices/system/cpu sys/devices/system/cpu none bind,optional 0 0",
	}
	if got := lxcfsMounts(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
