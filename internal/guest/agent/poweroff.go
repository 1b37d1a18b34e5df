package agent

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// powerOff is SIGRTMIN+4, which makes systemd power the machine off (systemd(1), Signals).
const powerOff = unix.Signal(34 + 4)

// PowerOff asks the init of the machine to power it off. The agent runs before that init does. A
// signal that process 1 does not handle is lost, and the machine would continue to boot. So
// PowerOff waits until init can receive the signal.
func (guest) PowerOff() error {
	for range 600 {
		status, err := os.ReadFile("/proc/1/status")
		if err != nil {
			return err
		}
		if handlesSignal(string(status), powerOff) {
			if err := unix.Kill(1, powerOff); err != nil {
				return os.NewSyscallError("kill", err)
			}
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return problem.New(problem.Failed,
		"the machine cannot be shut down cleanly: its init does not handle the power-off signal").
		Try("its console shows what it is doing")
}

// handlesSignal reports, from /proc/PID/status, whether a process has blocked a signal. Systemd blocks the
// signals that it reads by signalfd(2). Other programs handle or ignore signals, such as
// orrery-guest before it executes init.
func handlesSignal(status string, signal unix.Signal) bool {
	for line := range strings.Lines(status) {
		if digits, ok := strings.CutPrefix(line, "SigBlk:"); ok {
			mask, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 64)
			return err == nil && mask&(1<<(signal-1)) != 0
		}
	}
	return false
}
