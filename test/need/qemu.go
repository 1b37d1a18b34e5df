package need

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// NewQEMU lets a test find a QEMU and a virtiofsd that can do what those of Debian 12 cannot, such as moving a running machine with its root. It unpacks them the
// first time.
func NewQEMU(t testing.TB) {
	t.Helper()
	Integration(t)
	at := filepath.Clean(State()) + "-qemu" // beside the state of hosts, in which there is nothing that strangers may read
	if out, err := exec.Command(filepath.Join(top(t), "packaging/qemu-new"), at).CombinedOutput(); err != nil {
		t.Fatalf("packaging/qemu-new: %v\n%s", err, out)
	}
	t.Setenv("PATH", filepath.Join(at, "bin")+":"+os.Getenv("PATH"))
}

// top returns the top of the repository.
func top(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == "/" {
			t.Fatal("this is no directory of the repository")
		}
	}
}
