package host

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Program returns a command for a program of this machine. All of Orrery starts programs through
// it, which TestPrograms of internal/ checks.
//
// The program gets a session of its own, and so has no controlling terminal. Otherwise a command in
// a node could open the operator's terminal as /dev/tty, and type there (TIOCSTI) what the
// operator's shell then runs as root. When ctx ends, the whole process group of the program is
// killed.
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

// outputGrace is how long the output of a program is read after its end, if a process that it left
// behind holds the output open.
var outputGrace = 2 * time.Second // variable, so that tests can change it
