package need

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Apart makes a state directory below that of all integration tests, with their layers but without
// their sites. Commands there that affect all sites affect no other test.
func Apart(t testing.TB, state string) {
	t.Helper()
	Integration(t)
	if err := os.MkdirAll(state, 0o711); err != nil {
		t.Fatal(err)
	}
	for dir := state; strings.HasPrefix(dir, State()+"/"); dir = filepath.Dir(dir) {
		// Nodes must be able to start, whatever root's umask is.
		if err := os.Chmod(dir, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	for _, shared := range []string{"store", "cache"} {
		of := filepath.Join(State(), shared)
		err := errors.Join(os.MkdirAll(of, 0o700), os.Symlink(of, filepath.Join(state, shared)))
		if err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
}
