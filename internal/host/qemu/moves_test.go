package qemu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/problem"
)

// TestStuck checks that a version that is too old is reported with its cure.
func TestStuck(t *testing.T) {
	for _, c := range []struct{ system, share, lacks string }{
		{"QEMU emulator version 7.2.22", "virtiofsd 1.13.2", "QEMU 7.2.22"},
		{"QEMU emulator version 8.2.0", "virtiofsd version 7.2.22", "virtiofsd 7.2.22"},
		{"QEMU emulator version 10.0.2", "virtiofsd 1.11.1", "virtiofsd 1.11.1"},
		{"QEMU emulator version 10.0.2", "virtiofsd 1.12.0", ""},
	} {
		dir := t.TempDir()
		for name, says := range map[string]string{"qemu-system-x86_64": c.system, "virtiofsd": c.share} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho '"+says+"'\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", dir)
		err := Versions{filepath.Join(dir, "programs.json")}.CheckMigration(t.Context())
		if c.lacks == "" && err != nil || c.lacks != "" &&
			(problem.ExitCode(err) != int(problem.Unable) || !strings.Contains(err.Error(), c.lacks+" cannot") ||
				!strings.Contains(err.Error(), "Debian 13")) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
