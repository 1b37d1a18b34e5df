package kvm

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"orrery/internal/engine/confine"
	"orrery/internal/engine/kvm/record"
	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/internal/host/process"
	"orrery/internal/host/qemu"
	"orrery/internal/tree/rawfile"
)

// openRecorder opens the pipe to which QEMU writes the console's output. It starts the recorder process
// unless the group has one. The process ends when no QEMU has the pipe open any more. It is
// confined like QEMU, because it reads what a guest has written.
func openRecorder(ctx context.Context, dir string, cell confine.Sandbox, in cgroup.Group) (*os.File, error) {
	if findRecorder(in) != 0 {
		if to, err := record.Open(dir); err == nil {
			return to, nil
		}
	}
	program, err := qemu.Guest()
	if err == nil {
		program, err = filepath.EvalSymlinks(program) // a sandbox does not include the target of a link
	}
	if err != nil {
		return nil, err
	}
	cell.Sees = visiblePaths(program)
	kept, err := record.Create(dir)
	if err != nil {
		return nil, err
	}
	defer kept.Close()
	cmd := host.Program(context.WithoutCancel(ctx), program, record.Command)
	cmd.Stdin, cmd.ExtraFiles = kept.From, kept.Halves[:]
	if err := host.OnLockedThread(func() error { return cell.Start(cmd, in) }); err != nil {
		kept.To.Close() //nolint:errcheck // nothing was written
		return nil, err
	}
	go func() { _ = cmd.Wait() }() // reap the process
	return kept.To, nil
}

// visiblePaths returns the paths that the process can see: libraries, and the program unless it is
// installed among them.
func visiblePaths(program string) []string {
	all := confine.QEMUPaths(program)
	if slices.ContainsFunc(all, func(dir string) bool { return strings.HasPrefix(program, dir+"/") }) {
		return all
	}
	return append(all, program)
}

// findRecorder returns the recorder process in a group, or 0 if there is none.
func findRecorder(in cgroup.Group) int {
	for _, pid := range in.Processes() {
		if name, _ := rawfile.ReadFile(process.Host.File(pid, "comm")); strings.HasPrefix(string(name), qemu.GuestName) {
			return pid
		}
	}
	return 0
}

// otherRecorders returns all other processes in a group.
func otherRecorders(in cgroup.Group) []int {
	of := findRecorder(in)
	return slices.DeleteFunc(in.Processes(), func(pid int) bool { return pid == of })
}

// timeout limits how long the process may take to write the last output after QEMU has ended.
const timeout = 2 * time.Second

// awaitRecorder waits until all output of a machine that has ended is recorded.
func awaitRecorder(ctx context.Context, in cgroup.Group) {
	held, err := process.Open(findRecorder(in))
	if err != nil {
		return
	}
	defer held.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	_ = held.RetryUntilEnded(ctx, func(int) error { return nil }) // ignore the error: then the last output is lost
}

// killRecorders kills all processes in a group. It kills the recorder last, when it has recorded everything.
// killRecorders does not end with ctx.
func killRecorders(ctx context.Context, in cgroup.Group) error {
	ctx = context.WithoutCancel(ctx)
	if of := findRecorder(in); of != 0 {
		if err := in.KillMatching(ctx, func(pid int) bool { return pid != of }); err != nil {
			return err
		}
		awaitRecorder(ctx, in)
	}
	return in.Kill(ctx)
}
