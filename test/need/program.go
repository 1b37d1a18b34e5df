package need

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Program returns the path of a host program that a test needs, even if only root has it in PATH.
// In make test the program must exist, since packaging/packages has installed it.
func Program(t testing.TB, name string) string {
	t.Helper()
	for _, dir := range append(strings.Split(os.Getenv("PATH"), ":"), "/usr/sbin", "/sbin") {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	if Asked() {
		t.Fatalf("%s is not installed, and packaging/packages test does not see to it", name)
	}
	t.Skipf("%s is not installed: packaging/packages test does that", name)
	return ""
}
