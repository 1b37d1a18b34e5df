package boot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConditions checks that the drop-ins have names of their own: systemd reads only the first of
// several files of one name, and images have an orrery.conf for modprobe@.service.
func TestConditions(t *testing.T) {
	units := filepath.Join(t.TempDir(), "system")
	if err := writeConditions(units); err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob(filepath.Join(units, "*.service.d", "*"))
	if err != nil || len(all) != len(conditions) {
		t.Fatalf("%d drop-ins, %v", len(all), err)
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(text), "[Unit]\nCondition") || !strings.HasSuffix(string(text), "\n") {
			t.Errorf("%s: %q %v", path, text, err)
		}
		if filepath.Base(path) != "orrery-guest.conf" {
			t.Errorf("%s may be replaced by the image's", path)
		}
	}
}
