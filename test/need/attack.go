package need

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Attack builds the attack program (test/attack) and returns its path. It is static, so that it
// runs in any node, and every user of the host may run it.
func Attack(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "orrery-attack-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // attackers are other users
		t.Fatal(err)
	}
	program := filepath.Join(dir, "attack")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "orrery/test/attack")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build orrery/test/attack: %v\n%s", err, out)
	}
	if err := os.Chmod(program, 0o755); err != nil { //nolint:gosec // as above
		t.Fatal(err)
	}
	return program
}
