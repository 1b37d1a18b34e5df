package agent

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// powerOff is SIGRTMIN+4, by which systemd powers the machine off (systemd(1), Signals).
const powerOff = unix.Signal(34 + 4)

// PowerOff asks the init of the machine to power it off. The agent is there before that init is: a
// signal to a process 1 that does not take it is lost, and the machine would go on booting and
// never stop. So it is sent when it will be taken, if only later.
func (place) PowerOff() error {
	for range 600 {
		status, err := os.ReadFile("/proc/1/status")
		if err != nil {
			return err
		}
		if waits(string(status), powerOff) {
			if err := unix.Kill(1, powerOff); err != nil {
				return os.NewSyscallError("kill", err)
			}
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return problem.New(problem.Failed,
		"the init of the machine does not take the signal to power off, so the machine cannot be shut down cleanly").
		Try("its console says what it is at")
}

// waits tells from /proc/PID/status whether a process has blocked a signal, which is how systemd
// gets those that it reads when it likes (signalfd(2)). Others, such as orrery-guest itself before
// it makes way for init, handle signals or ignore them.
func waits(status string, signal unix.Signal) bool {
	for line := range strings.Lines(status) {
		if digits, ok := strings.CutPrefix(line, "SigBlk:"); ok {
			mask, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 64)
			return err == nil && mask&(1<<(signal-1)) != 0
		}
	}
	return false
}
