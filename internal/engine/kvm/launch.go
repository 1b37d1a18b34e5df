package kvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"orrery/internal/engine/confine"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/qemu"
	"orrery/internal/image/kernel"
	"orrery/internal/network/ends"
	"orrery/internal/observe"
	"orrery/internal/wire"
)

// launch starts QEMU, as a user that nobody else is on this host and that no file of the node belongs to. It sees what it boots from, and is handed open what else
// it may have of the host.
func (e *Engine) launch(ctx context.Context, m machine, r *nodedir.Record, from *kernel.Boot, accel string, log, root *os.File) (err error) {
	files, err := m.hand(r, log, root)
	defer func() {
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
	}()
	if err != nil {
		return err
	}
	queues := make([]int, len(r.NICs))
	for i := range queues {
		queues[i] = 1
	}
	args, err := command(&r.Node, from, accel, hand(queues))
	if err != nil {
		return err
	}
	program, err := qemu.System()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return err
	}
	said, err := scrap("qemu")
	if err != nil {
		return err
	}
	defer said.Close()
	cmd := host.Program(context.WithoutCancel(ctx), program, args...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = said, said, files
	ids := r.IDs()
	cell := confine.Cell{At: m.File("cell"), User: ids.First + ids.Size - 1, Sees: append(slices.Clone(confine.QEMU), program, from.Kernel, from.Initramfs)}
	if accel == observe.KVM {
		cell.Devices = []string{"kvm"}
	}
	if err := os.MkdirAll(cell.At, 0o700); err != nil {
		return err
	}
	if err := host.Apart(func() error { return cell.Start(cmd, m.group()) }); err != nil {
		return m.startProblem(err, "")
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return m.listens(ctx, ended, said)
}

// hand opens what QEMU is handed, in the order of hand.
func (m machine) hand(r *nodedir.Record, log, root *os.File) (files []*os.File, err error) {
	if files, err = handCopy(files, log); err != nil {
		return files, err
	}
	if files, err = m.handListening(files, consoleSocket); err != nil {
		return files, err
	}
	if files, err = handCopy(files, root); err != nil {
		return files, err
	}
	names := []string{monitor}
	for port := range wire.Ports {
		names = append(names, wire.Socket(port))
	}
	if files, err = m.handListening(files, names...); err != nil {
		return files, err
	}
	for _, nic := range r.NICs {
		taps, err := ends.OpenTap(nic, r.KindOf(nic), 1)
		if err != nil {
			return files, err
		}
		files = append(files, taps...)
	}
	return files, nil
}

// monitor is the socket of QEMU's monitor, and consoleSocket that of the guest's serial port.
const (
	monitor       = "monitor.sock"
	consoleSocket = "console.sock"
)

// handCopy hands over a file that stays open here.
func handCopy(files []*os.File, f *os.File) ([]*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return files, os.NewSyscallError("fcntl", err)
	}
	return append(files, os.NewFile(uintptr(fd), f.Name())), nil
}

// handListening opens sockets at which QEMU is to listen.
func (m machine) handListening(files []*os.File, names ...string) ([]*os.File, error) {
	for _, name := range names {
		l, f, err := m.listen(name)
		if err != nil {
			return files, err
		}
		l.Close() //nolint:errcheck // QEMU listens
		files = append(files, f)
	}
	return files, nil
}

// monitor connects to the monitor of a machine.
func (m machine) monitor(ctx context.Context) (*qmp.Client, error) {
	return qmp.Dial(ctx, filepath.Join(m.run, monitor))
}

// listens waits until QEMU has set up the machine and answers at its monitor, or has ended, and said why.
func (m machine) listens(ctx context.Context, ended <-chan error, said *os.File) error {
	ready := make(chan error, 1)
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		q, err := m.monitor(asking)
		if err == nil {
			err = q.Close()
		}
		ready <- err
	}()
	select {
	case err := <-ended:
		return m.startProblem(fmt.Errorf("QEMU has ended: %w", err), saidOn(said))
	case err := <-ready:
		if err != nil {
			return m.startProblem(err, saidOn(said))
		}
		return nil
	}
}
