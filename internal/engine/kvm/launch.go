package kvm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"orrery/internal/engine/confine"
	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/host"
	"orrery/internal/host/qemu"
	"orrery/internal/observe"
	"orrery/internal/transport/rpc"
)

// A launch starts the programs of a machine. It opens each file that QEMU receives and then runs
// QEMU.
type launch struct {
	m        machine
	r        *nodedir.Record
	nodes    *nodedir.Nodes
	programs *programs
	line     *argv.Machine
	open     passedFiles
}

func newLaunch(nodes *nodedir.Nodes, programs *programs, m machine, r *nodedir.Record) *launch {
	accel, _ := programs.accel()
	return &launch{m, r, nodes, programs, &argv.Machine{Node: &r.Node, Accel: accel}, passedFiles{}}
}

func (l *launch) close() error { return l.open.close() }

// boot prepares everything that the machine needs and starts it. It returns what the guest is shown
// of the private layer.
func (l *launch) boot(ctx context.Context) (shown shownFiles, err error) {
	if !l.r.Imported() {
		if shown, err = l.prepare(ctx); err != nil {
			return nil, err
		}
	}
	if err := l.openRecorder(ctx, l.m); err != nil {
		return nil, err
	}
	if err := l.openSockets(); err != nil {
		return nil, err
	}
	if err := l.open.createLinks(l.r); err != nil {
		return nil, err
	}
	state, err := l.openState()
	if err != nil {
		return nil, err
	}
	defer state.close()
	if l.r.Imported() {
		if err := l.openImage(); err != nil {
			return nil, err
		}
	}
	if err := l.run(ctx); err != nil {
		return nil, err
	}
	if err := state.load(ctx, l.m); err != nil {
		return nil, l.m.StartProblem(err, "")
	}
	// A machine that recalls a state owns its images only after it has loaded the state.
	if err := growImages(ctx, l.m, &l.r.Node); err != nil {
		return nil, err
	}
	if err := pin(ctx, l.m, &l.r.Node); err != nil {
		return nil, l.m.StartProblem(err, "")
	}
	return shown, nil
}

// prepare prepares the root and the disks of a machine that boots Orrery's own kernel.
func (l *launch) prepare(ctx context.Context) (shown shownFiles, err error) {
	if l.line.Boot, err = vm.BootFiles(ctx, l.nodes, l.r); err != nil {
		return nil, err
	}
	if err := checkNICDriver(&l.r.Node, l.line.Boot); err != nil {
		return nil, err
	}
	if err := l.m.ProvideDisks(ctx, l.r); err != nil {
		return nil, err
	}
	if l.r.VM.Disk != "" {
		if shown, err = l.writeStack(ctx); err != nil {
			return nil, err
		}
	}
	return shown, l.openRoot(ctx, 0)
}

// openRoot opens the shared root and the disks for QEMU. beside is the virtiofsd whose mounts are
// shared, or 0.
func (l *launch) openRoot(ctx context.Context, beside int) (err error) {
	if err := l.openDisks(); err != nil {
		return err
	}
	if err := writeRecordedNICs(l.nodes.Dirs, l.m, l.r); err != nil {
		// even if a version that used the command line started it
		return err
	}
	return l.open.add(argv.Share, func() (*os.File, error) { return l.startVirtiofsd(ctx, beside) })
}

// openRecorder opens the pipe to the recorder of the guest's console, in the run directory of machine m.
func (l *launch) openRecorder(ctx context.Context, m machine) error {
	cell, err := m.Sandbox(l.r)
	if err != nil {
		return err
	}
	return l.open.add(argv.Record, func() (*os.File, error) {
		to, err := openRecorder(ctx, m.Run, cell, m.Group())
		if err != nil {
			return nil, m.StartProblem(err, "")
		}
		return to, nil
	})
}

// openSockets opens the sockets on which QEMU listens. A guest of ours has an agent behind some of
// them.
func (l *launch) openSockets() error {
	names := map[string]string{argv.Console: consoleSocket, argv.Monitor: monitorSocket}
	if !l.r.Imported() {
		for port := range rpc.Ports {
			names[argv.Agent(port)] = rpc.SocketName(port)
		}
	}
	for name, socket := range names {
		listener, f, err := l.m.listen(socket)
		if err != nil {
			return err
		}
		listener.Close() //nolint:errcheck // QEMU listens
		l.open[name] = f
	}
	return nil
}

// openDisks opens the disks of the machine. The QEMU that writes to an image locks it.
func (l *launch) openDisks() error {
	for _, drive := range l.r.VM.Drives() {
		if err := l.open.add(argv.DriveFile(drive), l.m.Disk(drive).Open); err != nil {
			return err
		}
	}
	return nil
}

// run starts QEMU as a user that exists nowhere else on this host and owns no file of the node.
// QEMU can open the files that it boots from, and receives everything else of the host open.
func (l *launch) run(ctx context.Context) error {
	program, err := qemu.System()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return err
	}
	cell, err := l.sandbox(ctx, program)
	if err != nil {
		return err
	}
	if l.line.VHost, err = l.open.openVHost(l.m, &l.r.Node); err != nil {
		return err
	}
	args, told, err := l.line.CommandLine()
	if err != nil {
		return err
	}
	files, err := l.open.inOrder(told.Names())
	if err != nil {
		return err
	}
	said, err := confine.OutputFile("qemu")
	if err != nil {
		return err
	}
	defer said.Close()
	cmd := host.Program(context.WithoutCancel(ctx), program, args...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = said, said, files
	if err := host.OnLockedThread(func() error { return cell.Start(cmd, l.m.Group()) }); err != nil {
		return l.m.StartProblem(err, "")
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := l.open.release(argv.Record); err != nil {
		return err
	}
	return l.awaitMonitor(ctx, ended, said)
}

// sandbox returns the confinement of QEMU, including the host's devices that it may use. Virtiofsd is
// in the same control group and may use them, too, but has no guest yet.
func (l *launch) sandbox(ctx context.Context, program string) (confine.Sandbox, error) {
	cell, err := l.m.Sandbox(l.r)
	if err != nil {
		return cell, err
	}
	cell.Sees = append(append(confine.QEMUPaths(program), program), l.line.BootFiles()...)
	if l.line.Accel == observe.KVM {
		cell.Devices = []string{"kvm"}
	}
	if l.line.PCI, err = l.bindPCI(ctx, &cell); err != nil {
		return cell, err
	}
	return cell, confine.AllowDevices(l.m.Group(), cell.Devices...)
}

// awaitMonitor waits until QEMU has set up the machine and answers on its monitor. If QEMU ends first,
// awaitMonitor returns what it printed.
func (l *launch) awaitMonitor(ctx context.Context, ended <-chan error, said *os.File) error {
	ready := make(chan error, 1)
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		q, err := l.m.monitor(asking)
		if err == nil {
			err = q.Close()
		}
		ready <- err
	}()
	select {
	case err := <-ended:
		return l.m.StartProblem(fmt.Errorf("QEMU has exited: %w", err), confine.ReadOutput(said))
	case err := <-ready:
		if err != nil {
			return l.m.StartProblem(err, confine.ReadOutput(said))
		}
		return nil
	}
}
