package kvm

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"orrery/internal/engine/confine"
	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/qemu"
	"orrery/internal/observe"
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
