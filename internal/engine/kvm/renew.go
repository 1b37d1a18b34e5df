package kvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/engine/confine"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/host/process"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// LiveUpgrade moves a running machine to another QEMU and virtiofsd: the versions that are now installed
// on this host. Both machines are in the node's control group and see the same root, which is
// mounted once. The second machine opens the links of the first. It uses them when it continues,
// and then the first stays stopped for good.
func (s states) LiveUpgrade(ctx context.Context, ref engine.Ref) (*engine.LiveUpgradeResult, error) {
	m := machineOf(s.guests.nodes, ref)
	r, err := s.guests.nodes.Record(ref)
	if err != nil {
		return nil, err
	}
	if !m.running() {
		return nil, engine.NotRunning(ref)
	}
	if m.frozenOrHalted() {
		return nil, problem.New(problem.Failed, "node %s is frozen: it cannot continue in another QEMU", ref.Name).At(ref.Site).
			Try("orrery start %s", ref.Name)
	}
	if err := s.checkMovable(ctx, r); err != nil {
		return nil, err
	}
	over, err := takeOver(s.guests, m)
	if err != nil {
		return nil, err
	}
	sent, err := s.migrateToNew(ctx, over, r)
	back := context.WithoutCancel(ctx)
	if err != nil {
		err = problem.New(problem.Failed, "node %s could not continue in another QEMU and stays in its own", ref.Name).
			At(m.Path()).Because(err).Try("orrery stop %[1]s, then orrery start %[1]s", ref.Name)
		return nil, errors.Join(err, over.rollBack(back))
	}
	if err := over.commit(back); err != nil {
		return nil, err
	}
	return &engine.LiveUpgradeResult{Downtime: time.Duration(sent.Downtime) * time.Millisecond,
		Took: time.Duration(sent.Total) * time.Millisecond, Bytes: sent.RAM.Transferred}, nil
}

// checkMovable returns a problem if the state of a machine cannot be saved or sent.
func (s states) checkMovable(ctx context.Context, r *nodedir.Record) error {
	if len(r.VM.PCI) > 0 || slices.ContainsFunc(r.VM.Drives(), func(d site.Drive) bool { return d.IsDevice() }) {
		return problem.New(problem.Unable, "node %s has exclusive devices of the host, which another QEMU cannot take over",
			r.Name).At(r.Site).Try("stop it and start it again")
	}
	if len(r.Doubt) > 0 {
		return problem.New(problem.Failed, "node %s: a run that plugged or unplugged its networks was killed", r.Name).
			At(r.Site).Try("orrery up %s, then run the same command again", r.Name)
	}
	if r.Imported() {
		return nil // it has no virtiofsd, and any QEMU can do the rest
	}
	return s.programs.versions.CheckMigration(ctx)
}

// migrateToNew starts the new machine and sends it the state of the running one.
func (s states) migrateToNew(ctx context.Context, over *takeover, r *nodedir.Record) (*qmp.Migration, error) {
	m := over.m
	if err := applyLimits(m, &r.Node, 2); err != nil {
		return nil, err
	}
	next := newLaunch(s.guests.nodes, s.programs, over.next(), r)
	old, err := m.monitor(ctx)
	if err != nil {
		return nil, err
	}
	defer old.Close() //nolint:errcheck // it has answered
	if status, err := old.Status(ctx); err != nil || status != qmp.Running {
		return nil, errors.Join(fmt.Errorf("its machine is %s", status), err)
	}
	if err := next.matchOld(ctx, old); err != nil {
		return nil, err
	}
	end, err := over.Headers.keepRestoring(m.qemu())
	if err != nil {
		return nil, err
	}
	defer end()
	err = next.startSuccessor(ctx, m)
	if err = errors.Join(err, next.close()); err != nil {
		return nil, err
	}
	heir, err := next.m.monitor(ctx)
	if err != nil {
		return nil, err
	}
	defer heir.Close() //nolint:errcheck // it has answered
	if !r.Imported() {
		s.guests.forgetUnusedFiles(ctx, m)
	}
	said, err := os.Open(process.Host.File(next.m.qemu(), "fd/2"))
	if err != nil {
		return nil, err
	}
	defer said.Close() //nolint:errcheck // nothing was written
	sent, err := sendState(ctx, old, heir)
	if words := confine.ReadOutput(said); err != nil && words != "" {
		err = fmt.Errorf("%w\noutput of the new QEMU: %s", err, words)
	}
	return sent, err
}

// sendState makes a machine send its state to another. Only the two QEMUs keep the connection open. If
// this process kept the receiver's end and the receiver ended, the sender would wait for ever, and
// its machine would stay stopped.
func sendState(ctx context.Context, old, heir *qmp.Client) (*qmp.Migration, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer ours.Close()
	err = heir.Receive(ctx, theirs)
	theirs.Close() //nolint:errcheck // the other machine has its own
	if err != nil {
		return nil, err
	}
	return old.Send(ctx, ours)
}

// matchOld makes the new machine compatible with the state of the old one: of the same type, with
// devices in the same places.
func (l *launch) matchOld(ctx context.Context, old *qmp.Client) (err error) {
	if !l.r.Imported() {
		if l.line.Boot, err = vm.BootFiles(ctx, l.nodes, l.r); err != nil {
			return err
		}
	}
	traits, err := traitsOf(ctx, old)
	if err != nil {
		return err
	}
	return traits.Apply(l.line)
}

// startSuccessor starts virtiofsd and QEMU of the new machine. It uses the old machine's console recorder
// and links.
func (l *launch) startSuccessor(ctx context.Context, m machine) error {
	if err := l.openRecorder(ctx, m); err != nil {
		return err
	}
	if err := l.open.inheritLinks(m.qemu(), l.r); err != nil {
		return err
	}
	root := l.openImage
	if !l.r.Imported() {
		root = func() error { return l.openRoot(ctx, m.virtiofsdPID()) }
	}
	if err := root(); err != nil {
		return err
	}
	if err := l.openSockets(); err != nil {
		return err
	}
	if err := l.run(ctx); err != nil {
		return err
	}
	return pin(ctx, l.m, &l.r.Node)
}

// socketPair returns both ends of a connection.
func socketPair() (one, other *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "state"), os.NewFile(uintptr(fds[1]), "state"), nil
}
