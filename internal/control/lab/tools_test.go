package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/lab/place"
)

// TestTools: the error lists all missing programs. A program that was sent is used.
func TestTools(t *testing.T) {
	sent := t.TempDir()
	if _, err := tools([]string{"orrery-none", place.Orrery, "orrery-nothing"}, sent); err == nil ||
		!strings.Contains(err.Error(), "orrery-none is missing") ||
		!strings.Contains(err.Error(), "orrery-nothing is missing") {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(filepath.Join(sent, "orrery-none"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	found, err := tools([]string{"orrery-none", place.Orrery}, sent)
	self, _ := os.Executable()
	if err != nil || found["orrery-none"] != filepath.Join(sent, "orrery-none") || found[place.Orrery] != self {
		t.Errorf("%v, %v", found, err)
	}
}
