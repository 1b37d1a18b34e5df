package host

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Program returns a program of this machine to be run. It is the one way in which Orrery starts
// programs; TestPrograms of internal/ sees to it.
//
// The program gets a session of its own, and with that no terminal: a command in a node that opens
// /dev/tty would otherwise reach the operator's, and could type there (TIOCSTI) what the operator's
// shell then runs as root. All of its process group is killed when ctx ends.
func Program(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
	cmd.WaitDelay = outputGrace
	return cmd
}

// outputGrace is how long the output of a program is read after its end, if something that it has left
// behind holds it open.
var outputGrace = 2 * time.Second // but in tests
