package kvm

import (
	"os"
	"strings"
	"testing"
)

// TestOpened: opened names a few files that the sharing process has open below a volume, and no
// files of other mounts.
func TestOpened(t *testing.T) {
	s := &remounting{sharer: os.Getpid()}
	for _, name := range []string{"stat", "status", "cmdline", "limits"} {
		f, err := os.Open("/proc/self/" + name)
		must(t, err)
		defer f.Close() //nolint:errcheck // it was read
		if got := s.openFilesBelow("/proc"); !strings.Contains(got, "/"+name) && name != "limits" {
			t.Errorf("with %s open: %q", name, got)
		}
	}
	if got := s.openFilesBelow("/proc"); !strings.HasSuffix(got, " and more") {
		t.Errorf("of four: %q", got)
	}
	if got := s.openFilesBelow("/nothing"); got != "" {
		t.Errorf("where nothing is mounted: %q", got)
	}
}
