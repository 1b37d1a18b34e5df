package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"orrery/internal/problem"
)

// TestLockOfTheDead checks the lock of a process that was killed while it started a program, which
// inherits the lock for a moment. The next process waits for that, but not for a holder that is
// alive.
func TestLockOfTheDead(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "lock")
	l, err := TakeLock(t.Context(), path, Holder{Who: "ada", Pid: gone.Process.Pid, Since: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	starting := exec.Command("sleep", "0.3")
	starting.ExtraFiles = []*os.File{l.file}
	if err := starting.Start(); err != nil {
		t.Fatal(err)
	}
	l.file.Close() // as the kernel does for a killed process
	next, err := TakeLock(t.Context(), path, Holder{Who: "bob", Pid: os.Getpid(), Since: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if err := starting.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := TakeLock(t.Context(), path, Holder{}); problem.ExitCode(err) != int(problem.Locked) {
		t.Errorf("of one that lives: %v", err)
	}
	next.Release()
}
