package volume

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"orrery/internal/host"
)

// TestErase: an erased tree disappears from its path at once, and the rest that a killed run left
// is removed later.
func TestErase(t *testing.T) {
	dirs := host.Dirs{State: t.TempDir()}
	volume := filepath.Join(dirs.Volumes("karoo"), "data", "db")
	copied := filepath.Join(dirs.VolumeCopies("karoo", 701), "data", "db")
	for _, path := range []string{volume, copied} {
		for _, dir := range []string{path, removedName(path)} { // the latter is what a killed run leaves
			if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "rows"), nil, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := Sweep(dirs, "karoo"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{volume, copied} {
		if _, err := os.Stat(filepath.Join(path, "rows")); err != nil {
			t.Error(err)
		}
		if err := Erase(path); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
			t.Errorf("left are %v, %v", left, err)
		}
		if err := Erase(path); err != nil {
			t.Error(err)
		}
	}
}
