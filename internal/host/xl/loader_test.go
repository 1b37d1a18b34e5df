package xl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/problem"
)

// TestLoader checks that a missing boot loader is reported with the package that contains it.
func TestLoader(t *testing.T) {
	old := Loaders["pv"]
	defer func() { Loaders["pv"] = old }()
	Loaders["pv"] = filepath.Join(t.TempDir(), "grub")
	if _, err := Loader("pv"); problem.ExitCode(err) != int(problem.Unable) ||
		!strings.Contains(err.Error(), "grub-xen-host") {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(Loaders["pv"], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Loader("pv"); err != nil {
		t.Error(err)
	}
}
