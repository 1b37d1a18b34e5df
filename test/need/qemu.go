package need

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// NewQEMU lets a test find a QEMU and a virtiofsd with features that those of Debian 12 lack, such
// as moving a running machine with its root. It unpacks them the first time.
func NewQEMU(t testing.TB) {
	t.Helper()
	Integration(t)
	at := filepath.Clean(State()) + "-qemu" // beside the state of hosts, which strangers may not read
	if out, err := exec.Command(filepath.Join(top(t), "packaging/qemu-new"), at).CombinedOutput(); err != nil {
		t.Fatalf("packaging/qemu-new: %v\n%s", err, out)
	}
	t.Setenv("PATH", filepath.Join(at, "bin")+":"+os.Getenv("PATH"))
}

// top returns the top directory of the repository.
func top(t testing.TB) string {
	t.Helper()
	dir, _, err := place()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// place returns the top directory of the repository, and the package's directory below it.
func place() (top, pkg string, err error) {
	dir, err := os.Getwd() // where go test started it
	if err != nil {
		return "", "", err
	}
	for top = dir; ; top = filepath.Dir(top) {
		if _, err := os.Stat(filepath.Join(top, "go.mod")); err == nil {
			pkg, err := filepath.Rel(top, dir)
			return top, pkg, err
		}
		if top == "/" {
			return "", "", fmt.Errorf("%s is not a directory of the repository", dir)
		}
	}
}
