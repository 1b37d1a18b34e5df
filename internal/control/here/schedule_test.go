package here

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/schedule"
	"orrery/test/need"
)

// TestLaterIsKnown: if /run is on a disk, a waiting job is still known after a site has come up,
// and nothing of the job remains in the end.
func TestLaterIsKnown(t *testing.T) {
	need.Integration(t)
	if host.SystemdRuns() {
		t.Skip("a unit of systemd waits")
	}
	top, err := os.MkdirTemp("/var/tmp", "orrery-test-")
	if err != nil {
		t.Fatal(err)
	}
	a := LocalMachine{Dirs: host.Dirs{State: filepath.Join(top, "state"), Run: filepath.Join(top, "run")}}
	t.Cleanup(func() {
		_ = unix.Unmount(a.Dirs.Run, unix.MNT_DETACH)
		if err := os.RemoveAll(top); err != nil {
			t.Error(err)
		}
	})
	if err := a.Later(t.Context(), schedule.Job{Name: "try", After: time.Hour, Args: []string{"version"}}); err != nil {
		t.Fatal(err)
	}
	letGo, err := host.EnsureInMemory(t.Context(), a.Dirs.Run) // as every site does when it comes up
	if err != nil {
		t.Fatal(err)
	}
	if waiting, err := schedule.List(a.Dirs); err != nil || len(waiting) != 1 {
		t.Errorf("what waits is %v: %v", waiting, err)
	}
	if err := schedule.Cancel("try", a.Dirs); err != nil {
		t.Error(err)
	}
	letGo()
	if left, _ := filepath.Glob(filepath.Join(a.Dirs.Run, "*", "*")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}
