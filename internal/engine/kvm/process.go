package kvm

import (
	"context"
	"os"
	"strings"

	"orrery/internal/engine/process"
)

// The programs of a machine, as the kernel calls their processes (proc_pid_comm(5), which has 15 bytes).
const (
	qemuComm  = "qemu-system"
	shareComm = "virtiofsd"
)

// qemu gives the process of the machine, or 0 if it does not run. Without its root, which virtiofsd gives it, a guest is as good as dead: it waits for ever.
func (m machine) qemu() (pid int) {
	shared := false
	for _, inside := range m.group().Processes() {
		name, err := os.ReadFile(process.Host.File(inside, "comm"))
		switch {
		case err != nil:
		case strings.HasPrefix(string(name), shareComm):
			shared = true
		case strings.HasPrefix(string(name), qemuComm):
			pid = inside
		}
	}
	if !shared {
		return 0
	}
	return pid
}

func (m machine) running() bool { return m.qemu() != 0 }

// awaitOff waits until the machine has ended.
func (m machine) awaitOff(ctx context.Context) error {
	held, err := process.Hold(m.qemu())
	if err != nil {
		return nil
	}
	defer held.Close()
	if !m.running() {
		return nil
	}
	return held.UntilEnded(ctx, func(int) error { return nil })
}
