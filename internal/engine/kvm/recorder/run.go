// Package recorder starts, finds and ends the process that records a virtual machine's console.
package recorder

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

// Open opens what QEMU writes to, and starts the process unless it runs in the group. It ends when
// no QEMU has that open any more. As it reads what a guest has written, it is in a cell, too.
func Open(ctx context.Context, dir string, cell confine.Cell, in cgroup.Group) (*os.File, error) {
	if Of(in) != 0 {
		if to, err := record.Open(dir); err == nil {
			return to, nil
		}
	}
	program, err := qemu.Guest()
	if err == nil {
		program, err = filepath.EvalSymlinks(program) // what a link leads to is not seen in a cell
	}
	if err != nil {
		return nil, err
	}
	cell.Sees = seen(program)
	kept, err := record.Make(dir)
	if err != nil {
		return nil, err
	}
	defer kept.Close()
	cmd := host.Program(context.WithoutCancel(ctx), program, record.Word)
	cmd.Stdin, cmd.ExtraFiles = kept.From, kept.Halves[:]
	if err := host.Apart(func() error { return cell.Start(cmd, in) }); err != nil {
		kept.To.Close() //nolint:errcheck // nothing was written
		return nil, err
	}
	go func() { _ = cmd.Wait() }() // so that it is not left as a zombie
	return kept.To, nil
}

// seen returns what the process sees: libraries, and the program unless it is installed among them.
func seen(program string) []string {
	all := confine.QEMU(program)
	if slices.ContainsFunc(all, func(dir string) bool { return strings.HasPrefix(program, dir+"/") }) {
		return all
	}
	return append(all, program)
}

// Of returns the process in a group, or 0.
func Of(in cgroup.Group) int {
	for _, pid := range in.Processes() {
		if name, _ := rawfile.ReadFile(process.Host.File(pid, "comm")); strings.HasPrefix(string(name), qemu.GuestName) {
			return pid
		}
	}
	return 0
}

// Others returns all other processes in a group.
func Others(in cgroup.Group) []int {
	of := Of(in)
	return slices.DeleteFunc(in.Processes(), func(pid int) bool { return pid == of })
}

// timeout is how long the process may take to write down the last after QEMU has ended.
const timeout = 2 * time.Second

// Await waits until all is recorded that a machine has printed that has ended.
func Await(ctx context.Context, in cgroup.Group) {
	held, err := process.Hold(Of(in))
	if err != nil {
		return
	}
	defer held.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	_ = held.UntilEnded(ctx, func(int) error { return nil }) // if it does not end, the last is lost
}

// End kills all in a group, the recorder last, once it has all. It does not end with ctx.
func End(ctx context.Context, in cgroup.Group) error {
	ctx = context.WithoutCancel(ctx)
	if of := Of(in); of != 0 {
		if err := in.KillThose(ctx, func(pid int) bool { return pid != of }); err != nil {
			return err
		}
		Await(ctx, in)
	}
	return in.Kill(ctx)
}
