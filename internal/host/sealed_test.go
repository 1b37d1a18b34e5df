package host

import (
	"os/exec"
	"strings"
	"testing"
)

func TestSeal(t *testing.T) {
	path, err := Seal("cat")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Seal("cat"); err != nil || again != path {
		t.Errorf("the second time %s (%v), the first %s", again, err, path)
	}
	cmd := exec.Command(path)
	cmd.Stdin = strings.NewReader("from memory")
	if out, err := cmd.Output(); err != nil || string(out) != "from memory" {
		t.Errorf("%q, %v", out, err)
	}
	if err := exec.Command("/bin/sh", "-c", "echo x >> "+path).Run(); err == nil {
		t.Error("the copy was written to")
	}
	if _, err := Seal("no-such-program"); err == nil || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("a program that is not there: %v", err)
	}
}
