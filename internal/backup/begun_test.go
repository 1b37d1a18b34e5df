package backup

import (
	"os"
	"path/filepath"
	"testing"
)

// TestBegun: what a run leaves that is killed while it makes the repository is gone after the next one, whether that run came far or not.
func TestBegun(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "."+markName+"123456")
	for range 2 { // it is not a repository yet, and then it is
		must(t, os.WriteFile(left, []byte("orr"), 0o600))
		w, err := WriteRepository(dir)
		must(t, err)
		must(t, w.Close())
		if _, err := os.Lstat(left); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", left, err)
		}
	}
}
