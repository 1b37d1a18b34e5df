package kvm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/engine/confine"
	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/qemu"
	"orrery/internal/network/ends"
	"orrery/internal/observe"
	"orrery/internal/site/spec"
	"orrery/internal/wire"
)

// launch starts QEMU, as a user that nobody else is on this host and that no file of the node belongs to. It sees what it boots from, and is handed open what else
// it may have of the host.
func (e *Engine) launch(ctx context.Context, m machine, r *nodedir.Record, line *argv.Machine, open handed) error {
	program, err := qemu.System()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return err
	}
	cell, err := m.Cell(r)
	if err != nil {
		return err
	}
	cell.Sees = append(append(confine.QEMU(program), program), line.Boots()...)
	if line.Accel == observe.KVM {
		cell.Devices = []string{"kvm"}
	}
	if line.PCI, err = m.lend(ctx, &cell, &r.Node); err != nil {
		return err
	}
	if err := confine.Allow(m.Group(), cell.Devices...); err != nil { // of virtiofsd, too, which has no guest yet
		return err
	}
	served := handed{}
	line.VHost, err = m.serve(served, &r.Node)
	maps.Copy(open, served)
	if err != nil {
		return err
	}
	args, told, err := line.Line()
	if err != nil {
		return err
	}
	files, err := open.as(told.Names())
	if err != nil {
		return err
	}
	said, err := confine.Scrap("qemu")
	if err != nil {
		return err
	}
	defer said.Close()
	cmd := host.Program(context.WithoutCancel(ctx), program, args...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = said, said, files
	if err := host.Apart(func() error { return cell.Start(cmd, m.Group()) }); err != nil {
		return m.StartProblem(err, "")
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := open.release(argv.Record); err != nil {
		return err
	}
	return m.listens(ctx, ended, said)
}

// handed are files that QEMU is to find open, by the names that its command line has for them.
type handed map[string]*os.File

// as returns the files in the order of names.
func (h handed) as(names []string) (all []*os.File, err error) {
	for _, name := range names {
		if h[name] == nil {
			return nil, fmt.Errorf("QEMU is to be handed %s, and nobody has opened it", name)
		}
		all = append(all, h[name])
	}
	if len(h) != len(all) {
		return nil, fmt.Errorf("of %d files that were opened for QEMU, it is told of %d", len(h), len(all))
	}
	return all, nil
}

func (h handed) close() error {
	var errs []error
	for _, f := range h {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// release closes a file that QEMU alone is to have from now on.
func (h handed) release(name string) error {
	f := h[name]
	delete(h, name)
	return f.Close()
}

// handSockets opens those at which QEMU listens.
func (m machine) handSockets(open handed) error {
	sockets := map[string]string{argv.Console: consoleSocket, argv.Monitor: monitor}
	for port := range wire.Ports {
		sockets[argv.Agent(port)] = wire.Socket(port)
	}
	return m.handListening(open, sockets)
}

// handOwnSockets opens those that each machine has.
func (m machine) handOwnSockets(open handed) error {
	return m.handListening(open, map[string]string{argv.Console: consoleSocket, argv.Monitor: monitor})
}

// lay makes the links of a machine, and opens what QEMU is handed of them.
func (h handed) lay(r *nodedir.Record) error {
	for _, nic := range r.NICs {
		queues, err := ends.OpenTap(nic, r.KindOf(nic), argv.Queues(&r.Node))
		if err != nil {
			return err
		}
		h.link(nic, queues)
	}
	return nil
}

// link hands over the ends of a link, one for each queue.
func (h handed) link(nic spec.NIC, queues []*os.File) {
	for i, f := range queues {
		h[argv.Tap(nic, i)] = f
	}
}

// monitor is the socket of QEMU's monitor, and consoleSocket that of the guest's serial port.
const (
	monitor       = "monitor.sock"
	consoleSocket = "console.sock"
)

// copy hands over a file that stays open here.
func (h handed) copy(name string, f *os.File) error {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	h[name] = os.NewFile(uintptr(fd), f.Name())
	return nil
}

// handListening opens sockets at which QEMU is to listen.
func (m machine) handListening(open handed, sockets map[string]string) error {
	for name, socket := range sockets {
		l, f, err := m.listen(socket)
		if err != nil {
			return err
		}
		l.Close() //nolint:errcheck // QEMU listens
		open[name] = f
	}
	return nil
}

// monitor connects to the monitor of a machine.
func (m machine) monitor(ctx context.Context) (*qmp.Client, error) {
	return qmp.Dial(ctx, filepath.Join(m.Run, monitor))
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
		return m.StartProblem(fmt.Errorf("QEMU has ended: %w", err), confine.SaidOn(said))
	case err := <-ready:
		if err != nil {
			return m.StartProblem(err, confine.SaidOn(said))
		}
		return nil
	}
}
