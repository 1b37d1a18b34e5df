package need

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Guest puts orrery-guest, which make test builds, beside the program of the test, where an engine of virtual machines finds it.
func Guest(t testing.TB) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		program := filepath.Join(dir, "bin/orrery-guest")
		if _, err := os.Stat(program); err != nil {
			continue
		}
		if err := os.Symlink(program, filepath.Join(filepath.Dir(self), "orrery-guest")); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("bin/orrery-guest is not there: make bin/orrery-guest")
}
