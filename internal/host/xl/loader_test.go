package xl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/problem"
)

// TestLoader: a boot loader that is not there is told, with the package that has it.
func TestLoader(t *testing.T) {
	old := Loaders["pv"]
	defer func() { Loaders["pv"] = old }()
	Loaders["pv"] = filepath.Join(t.TempDir(), "grub")
	if _, err := Loader("pv"); problem.Exit(err) != int(problem.Unable) ||
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
