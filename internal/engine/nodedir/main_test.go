package nodedir

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMain has tests take user ids that they only say are theirs.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "slots")
	if err != nil {
		panic(err)
	}
	slots = filepath.Join(dir, "slots")
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}
