package need

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Guest puts orrery-guest, which make test builds, beside the test program, where an engine for
// virtual machines finds it.
func Guest(t testing.TB) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(top(t), "bin/orrery-guest")
	if _, err := os.Stat(program); err != nil {
		t.Fatal("bin/orrery-guest is not there: make bin/orrery-guest")
	}
	if err := os.Symlink(program, filepath.Join(filepath.Dir(self), "orrery-guest")); err != nil &&
		!errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
}
