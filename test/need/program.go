package need

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Program returns a program of the host that a test needs, even one that only root has in its PATH. In make
// test it must be there: packaging/packages has installed it.
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
