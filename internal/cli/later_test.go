package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/later"
	"orrery/test/need"
)

// TestLaterIsKnown: where /run is on a disk, what waits is known also when a site comes up after it was begun, and nothing of it stays.
func TestLaterIsKnown(t *testing.T) {
	need.Integration(t)
	if host.SystemdRuns() {
		t.Skip("a unit of systemd waits")
	}
	top, err := os.MkdirTemp("/var/tmp", "orrery-test-")
	if err != nil {
		t.Fatal(err)
	}
	a := &app{dirs: host.Dirs{State: filepath.Join(top, "state"), Run: filepath.Join(top, "run")}}
	t.Cleanup(func() {
		_ = unix.Unmount(a.dirs.Run, unix.MNT_DETACH)
		if err := os.RemoveAll(top); err != nil {
			t.Error(err)
		}
	})
	if err := a.later(later.Call{Name: "try", After: time.Hour, Args: []string{"version"}}); err != nil {
		t.Fatal(err)
	}
	letGo, err := host.HoldInMemory(a.dirs.Run) // as every site does that comes up
	if err != nil {
		t.Fatal(err)
	}
	if waiting, err := later.List(a.dirs); err != nil || len(waiting) != 1 {
		t.Errorf("what waits is %v: %v", waiting, err)
	}
	if err := later.Cancel("try", a.dirs); err != nil {
		t.Error(err)
	}
	letGo()
	if left, _ := filepath.Glob(filepath.Join(a.dirs.Run, "*", "*")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}
