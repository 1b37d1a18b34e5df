package lxc

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestLXCFS: nodes see what lxcfs provides, and nothing of it where it does not run.
func TestLXCFS(t *testing.T) {
	inventLXCFS(t)
	if got := lxcfsMounts(); len(got) > 0 {
		t.Errorf("without lxcfs: %q", got)
	}
	inventLXCFS(t, "proc/meminfo", "proc/slabinfo")
	must(t, os.MkdirAll(filepath.Join(lxcfsDir, "sys/devices/system/cpu"), 0o755))
	want := []string{
		lxcfsDir + "/proc/meminfo proc/meminfo none bind,optional 0 0",
		lxcfsDir + "/sys/devices/system/cpu sys/devices/system/cpu none bind,optional 0 0",
	}
	if got := lxcfsMounts(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// inventLXCFS replaces lxcfs by a directory with the given files until the test ends.
func inventLXCFS(t *testing.T, files ...string) {
	t.Helper()
	old := lxcfsDir
	t.Cleanup(func() { lxcfsDir = old })
	lxcfsDir = t.TempDir()
	for _, file := range files {
		path := filepath.Join(lxcfsDir, file)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, nil, 0o644))
	}
}
