package staging

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestLeft checks that Create removes directories of killed processes. It must keep locked and recent
// ones, and those with other names.
func TestLeft(t *testing.T) {
	in := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	busy, err := Create(in)
	must(err)
	long := time.Now().Add(-time.Hour)
	for name, when := range map[string]time.Time{".orrery-ABCDEFGHIJKL": long, ".orrery-ABCDEFGHIJKM": time.Now(),
		".orrery-of-the-user": long, filepath.Base(busy.Path): long} {
		must(os.MkdirAll(filepath.Join(in, name, "deep"), 0o755))
		must(os.Chtimes(filepath.Join(in, name), when, when))
	}
	must(os.Symlink(busy.Path, filepath.Join(in, ".orrery-ABCDEFGHIJKN")))
	d, err := Create(in)
	must(err)
	if _, err := os.Stat(filepath.Join(in, ".orrery-ABCDEFGHIJKL")); err == nil {
		t.Error("what was left is there still")
	}
	for _, path := range []string{d.Path, busy.Path, in + "/.orrery-ABCDEFGHIJKM", in + "/.orrery-of-the-user",
		in + "/.orrery-ABCDEFGHIJKN"} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	must(os.Mkdir(filepath.Join(d.Path, "deep"), 0o700))
	d.Remove()
	if _, err := os.Stat(d.Path); err == nil {
		t.Error("it is there after it has been removed")
	}
	busy.Remove()
}
