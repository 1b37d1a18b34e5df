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

// The programs of a machine, as the kernel calls their processes (proc_pid_comm(5), which has 15 bytes).
const (
	qemuComm  = "qemu-system"
	shareComm = "virtiofsd"
)

// processes are those of the machine: of two in one group, while one takes the place of the other, its own.
func (m machine) processes() []int {
	return slices.DeleteFunc(m.Group().Processes(), m.former.Has)
}

// qemu returns the process of the machine, or 0 if it does not run.
func (m machine) qemu() int {
	pid, _ := m.programs()
	return pid
}

func (m machine) running() bool { return m.qemu() != 0 }

// rootless reports whether a machine runs without virtiofsd, which shows it its root unless that is
// a disk of others. Such a guest waits for ever for files, but goes on writing to its disks and
// answering at its addresses: it counts as running, so that it is not started elsewhere.
func (m machine) rootless() bool {
	pid, shared := m.programs()
	return pid != 0 && !shared && !m.HasDisk()
}

// programs returns the process of QEMU, or 0 if there is none, and whether virtiofsd runs.
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

// outdated returns the programs of a running machine's processes that this host has others of by now.
func outdated(pids []int) (names []string) {
	for _, p := range []struct {
		comm string
		find func() (string, error)
	}{{qemuComm, qemu.System}, {shareComm, qemu.Virtiofsd}} {
		if path, err := p.find(); err == nil && !run(pids, p.comm, path) {
			names = append(names, filepath.Base(path))
		}
	}
	return names
}

// run reports whether those of some processes that bear a name run a program of this host, as it is now.
func run(pids []int, comm, program string) bool {
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
