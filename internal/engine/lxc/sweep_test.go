package lxc

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"orrery/internal/host/process"
)

// TestOrphaned: a command is an orphan if another process than the one that waited for it is its parent, whatever the sessions of both:
// under an init that gives no session of its own to what it starts, as containers have it, all are in one.
func TestOrphaned(t *testing.T) {
	for mark, want := range map[string]bool{
		fmt.Sprint(caller, os.Getpid()): false,
		fmt.Sprint(caller, 1):           true,
		"OTHER=1":                       false, // not ours
	} {
		cmd := exec.Command("sleep", "60")
		cmd.Env = []string{"A=b", mark, "C=d"}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for environment := []byte(nil); len(environment) == 0; { // it is empty while the program is being loaded
			environment, _ = os.ReadFile(fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid))
		}
		if got := orphaned(process.Host, process.Task{PID: cmd.Process.Pid, Parent: os.Getpid()}); got != want {
			t.Errorf("with %s: %v, want %v", mark, got, want)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
