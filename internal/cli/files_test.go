package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestFiles: each verb is in a file of its name.
func TestFiles(t *testing.T) {
	for _, c := range Verbs(nil).Commands() {
		if c.Hidden {
			continue
		}
		name := strings.ReplaceAll(c.Name(), "-", "") + ".go"
		found, err := filepath.Glob(filepath.Join("*", name))
		if err != nil || len(found) == 0 {
			t.Errorf("orrery %s: there is no file */%s: %v", c.Name(), name, err)
		}
	}
}
