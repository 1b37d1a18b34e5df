package kvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/qemu"
	"orrery/internal/image/kernel"
	"orrery/internal/network/ends"
	"orrery/internal/observe"
	"orrery/internal/wire"
)

// launch starts QEMU, and hands it open what it may have of the host. It runs as the node's root, whom nobody else is on this host, in namespaces of its own.
func (e *Engine) launch(ctx context.Context, m machine, r *nodedir.Record, from *kernel.Boot, accel string, root *os.File) (err error) {
	files, err := m.hand(r, from, root)
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
	args, err := command(&r.Node, accel, hand(queues))
	if err != nil {
		return err
	}
	program, err := qemu.System()
	if err != nil {
		return err
	}
	said, err := scrap("qemu")
	if err != nil {
		return err
	}
	defer said.Close()
	bounded := append([]string{"--fsize=" + strconv.Itoa(mostConsole), "--core=0", "--", program}, args...)
	cmd := host.Program(context.WithoutCancel(ctx), "prlimit", bounded...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + host.Path}
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = said, said, files
	who, err := user(r, accel)
	if err != nil {
		return err
	}
	cmd.SysProcAttr.Credential = who
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	signal.Ignore(unix.SIGXFSZ) // which QEMU inherits: a console that has printed too much goes on unrecorded
	if err := host.Apart(func() error { return m.group().Start(cmd) }); err != nil {
		return m.startProblem(err, "")
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return m.listens(ctx, ended, said)
}

// user is whom QEMU runs as. /dev/kvm belongs to a group that may use it.
func user(r *nodedir.Record, accel string) (*syscall.Credential, error) {
	id := uint32(r.IDs().First)
	who := &syscall.Credential{Uid: id, Gid: id}
	if accel != observe.KVM {
		return who, nil
	}
	var st unix.Stat_t
	if err := unix.Stat("/dev/kvm", &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: "/dev/kvm", Err: err}
	}
	who.Groups = []uint32{st.Gid}
	return who, nil
}

// hand opens what QEMU is handed, in the order of hand.
func (m machine) hand(r *nodedir.Record, from *kernel.Boot, root *os.File) (files []*os.File, err error) {
	for _, path := range []string{from.Kernel, from.Initramfs} {
		f, err := os.Open(path)
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	memory, err := memoryFile(memoryOf(&r.Node))
	if err != nil {
		return files, err
	}
	files = append(files, memory)
	console, err := os.OpenFile(m.console(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return files, err
	}
	files = append(files, console)
	share, err := unix.FcntlInt(root.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return files, os.NewSyscallError("fcntl", err)
	}
	files = append(files, os.NewFile(uintptr(share), "share"))
	names := []string{monitor}
	for port := range wire.Ports {
		names = append(names, wire.Socket(port))
	}
	for _, name := range names {
		l, f, err := m.listen(name)
		if err != nil {
			return files, err
		}
		l.Close() //nolint:errcheck // QEMU listens
		files = append(files, f)
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

// memoryFile is the memory of a guest, which QEMU and virtiofsd share. QEMU itself may write no file that is so large.
func memoryFile(size int64) (*os.File, error) {
	fd, err := unix.MemfdCreate("memory", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "memory")
	if err := f.Truncate(size); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// monitor is the socket of QEMU's monitor.
const monitor = "monitor.sock"

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
