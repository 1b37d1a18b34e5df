package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/problem"
)

// TestClaim has one site in two state directories.
func TestClaim(t *testing.T) {
	was := claims
	claims = filepath.Join(t.TempDir(), "claims")
	defer func() { claims = was }()
	a, b := Dirs{State: t.TempDir()}, Dirs{State: t.TempDir()}
	refused := func(d Dirs, by Dirs) {
		t.Helper()
		err := d.Claim("karoo")
		if err == nil || problem.Exit(err) != int(problem.Unable) || !strings.Contains(err.Error(), by.State) {
			t.Errorf("claimed by another: %v", err)
		}
	}
	granted := func(d Dirs, key string) {
		t.Helper()
		if err := d.Claim(key); err != nil {
			t.Error(err)
		}
	}
	granted(a, "karoo")
	granted(a, "karoo")
	granted(b, "toy")
	granted(b, "karoo") // a has no node of it, and nobody is at work there
	if err := os.MkdirAll(filepath.Join(b.Nodes("karoo"), "101"), 0o755); err != nil {
		t.Fatal(err)
	}
	refused(a, b)
	granted(b, "karoo")
	link := filepath.Join(t.TempDir(), "same")
	if err := os.Symlink(b.State, link); err != nil {
		t.Fatal(err)
	}
	granted(Dirs{State: link}, "karoo") // the same directory by another name
	granted(b, "karoo")
	if err := os.RemoveAll(b.Nodes("karoo")); err != nil {
		t.Fatal(err)
	}
	lock, err := TakeLock(b.Lock("karoo"), Holder{})
	if err != nil {
		t.Fatal(err)
	}
	refused(a, b)
	lock.Release()
	granted(a, "karoo")
	if err := os.RemoveAll(a.State); err != nil {
		t.Fatal(err)
	}
	granted(b, "karoo")
}
