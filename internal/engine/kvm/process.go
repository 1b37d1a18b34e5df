package kvm

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/host/process"
	"orrery/internal/host/qemu"
)

// The names of a machine's programs as the kernel has them (proc_pid_comm(5), up to 15 bytes).
const (
	qemuComm  = "qemu-system"
	shareComm = "virtiofsd"
)

// processes returns the processes of the machine. During a takeover, the group of the node has
// processes of two machines.
func (m machine) processes() []int {
	return slices.DeleteFunc(m.Group().Processes(), m.former.Has)
}

// qemu returns the process id of QEMU, or 0 if the machine does not run.
func (m machine) qemu() int {
	pid, _ := m.programs()
	return pid
}

func (m machine) running() bool { return m.qemu() != 0 }

// rootless reports whether a machine runs without virtiofsd, which serves its root unless the
// machine boots a foreign disk. Such a guest waits for ever for files, but still writes to its
// disks and answers at its addresses. It counts as running, so that it is not started elsewhere.
func (m machine) rootless() bool {
	pid, shared := m.programs()
	return pid != 0 && !shared && !m.HasDisk()
}

// programs returns the process id of QEMU, or 0 if there is none, and whether virtiofsd runs.
func (m machine) programs() (pid int, shared bool) {
	for _, inside := range m.processes() {
		name, err := os.ReadFile(process.Host.File(inside, "comm"))
		switch {
		case err != nil:
		case strings.HasPrefix(string(name), shareComm):
			shared = true
		case strings.HasPrefix(string(name), qemuComm):
			pid = inside
		}
	}
	return pid, shared
}

// awaitOff waits until the machine has ended.
func (m machine) awaitOff(ctx context.Context) error {
	held, err := process.Open(m.qemu())
	if err != nil {
		return nil
	}
	defer held.Close()
	if !m.running() {
		return nil
	}
	return held.RetryUntilEnded(ctx, func(int) error { return nil })
}

// outdated returns the programs of a running machine that have been replaced by other versions on
// this host.
func outdated(pids []int) (names []string) {
	for _, p := range []struct {
		comm string
		find func() (string, error)
	}{{qemuComm, qemu.System}, {shareComm, qemu.Virtiofsd}} {
		if path, err := p.find(); err == nil && !runCurrent(pids, p.comm, path) {
			names = append(names, filepath.Base(path))
		}
	}
	return names
}

// runCurrent reports whether those of the processes called comm run the program file as it is now.
func runCurrent(pids []int, comm, program string) bool {
	info, err := os.Stat(program)
	for _, pid := range pids {
		name, _ := os.ReadFile(process.Host.File(pid, "comm"))
		if !strings.HasPrefix(string(name), comm) {
			continue
		}
		if its, missing := os.Stat(process.Host.File(pid, "exe")); err == nil && missing == nil && !os.SameFile(its, info) {
			return false
		}
	}
	return true
}
