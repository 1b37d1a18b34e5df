package boot

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNameDrives checks the rules for a disk and its partitions, and that there are none without a
// file of the host.
func TestNameDrives(t *testing.T) {
	root, run := t.TempDir(), t.TempDir()
	if err := nameDrives(root, run); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(run); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	file := filepath.Join(root, DrivesFile)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(`[{"device": "xvde", "name": "data"}, {"device": "xvdf", "name": "log-2"}]`)
	if err := nameDrives(root, run); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(run, rulesFile))
	if want := `SUBSYSTEM=="block", KERNEL=="xvde", SYMLINK+="disk/by-id/virtio-data"
SUBSYSTEM=="block", KERNEL=="xvde[0-9]*", SYMLINK+="disk/by-id/virtio-data-part%n"
SUBSYSTEM=="block", KERNEL=="xvdf", SYMLINK+="disk/by-id/virtio-log-2"
SUBSYSTEM=="block", KERNEL=="xvdf[0-9]*", SYMLINK+="disk/by-id/virtio-log-2-part%n"
`; err != nil || string(got) != want {
		t.Errorf("%v, got\n%s", err, got)
	}
	write("[")
	if err := nameDrives(root, run); err == nil {
		t.Error("half a list is taken")
	}
}
