package boot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestShell checks that the unit is on the kernel's console, and is started with sysinit.target.
func TestShell(t *testing.T) {
	units := filepath.Join(t.TempDir(), "systemd", "system")
	if err := writeShell(units, "/dev/hvc0"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(units, "sysinit.target.wants", "orrery-console.service"))
	if err != nil || !strings.Contains(string(text), "\nTTYPath=/dev/hvc0\n") ||
		!strings.Contains(string(text), "DefaultDependencies=no") {
		t.Errorf("%s %v", text, err)
	}
}
