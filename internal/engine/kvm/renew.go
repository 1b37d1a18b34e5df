package kvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host/qemu"
	"orrery/internal/image/kernel"
	"orrery/internal/problem"
)

// Renew lets a running machine go on in another QEMU and with another virtiofsd: those that this host has now. Both machines are in the node's control group, and see the
// same root, which is mounted once. The second has the links of the first; it takes them up when it goes on, and the first stands still then, for good.
func (e *Engine) Renew(ctx context.Context, ref engine.Ref) (*engine.Renewal, error) {
	m := e.machine(ref)
	r, err := e.Record(ref)
	if err != nil {
		return nil, err
	}
	if !m.running() {
		return nil, engine.NotRunning(ref)
	}
	if m.group().Frozen() {
		return nil, problem.New(problem.Failed, "node %s stands still: it cannot go on elsewhere", ref.Name).At(ref.Site).Try("orrery start %s", ref.Name)
	}
	if err := e.movable(ctx, r); err != nil {
		return nil, err
	}
	of := handover{Leaving: crewOf(m.group())}
	if err := m.note(of); err != nil {
		return nil, err
	}
	sent, err := e.goOver(ctx, m, m.next(of.Leaving), r)
	back := context.WithoutCancel(ctx)
	if err != nil {
		err = problem.New(problem.Failed, "node %s does not go on in another QEMU, and stays where it was", ref.Name).At(m.Path()).Because(err).Try("orrery stop %[1]s, then orrery start %[1]s", ref.Name)
		return nil, errors.Join(err, e.stay(back, m, of))
	}
	if err := e.take(back, m, of); err != nil {
		return nil, err
	}
	return &engine.Renewal{Downtime: time.Duration(sent.Downtime) * time.Millisecond, Took: time.Duration(sent.Total) * time.Millisecond, Bytes: sent.RAM.Transferred}, nil
}

// movable wants that the state of a machine can be taken out of it.
func (e *Engine) movable(ctx context.Context, r *nodedir.Record) error {
	if len(r.VM.PCI) > 0 {
		return problem.New(problem.Unable, "node %s has devices of the host to itself, whose state nobody else can take over", r.Name).At(r.Site).Try("stop it and start it again")
	}
	if r.Imported() || len(r.VM.Drives()) > 0 {
		return problem.New(problem.Unable, "node %s has disks, which two QEMUs do not hand over yet", r.Name).At(r.Site).Try("stop it and start it again")
	}
	return e.versions().Stuck(ctx)
}

// next is the machine that takes the place of this one: what it has while it runs is below what this one has.
func (m machine) next(leaving crew) machine {
	n := m
	n.run, n.former = m.nextRun(), leaving
	return n
}

// goOver starts the machine that takes over, and sends it the state of the one that runs.
func (e *Engine) goOver(ctx context.Context, m, next machine, r *nodedir.Record) (*qmp.Migration, error) {
	old, err := m.monitor(ctx)
	if err != nil {
		return nil, err
	}
	defer old.Close() //nolint:errcheck // it has answered
	if is, err := old.Status(ctx); err != nil || is != qmp.Running {
		return nil, errors.Join(fmt.Errorf("its machine is %s", is), err)
	}
	line, err := e.likeness(ctx, old, r)
	if err != nil {
		return nil, err
	}
	if err := e.startNext(ctx, m, next, r, line); err != nil {
		return nil, err
	}
	heir, err := next.monitor(ctx)
	if err != nil {
		return nil, err
	}
	defer heir.Close() //nolint:errcheck // it has answered
	ours, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	defer ours.Close()
	defer theirs.Close()
	if err := heir.Receive(ctx, theirs); err != nil {
		return nil, err
	}
	return old.Send(ctx, ours)
}

// likeness is the machine that can take the state of one that runs: of the same type, with devices in the same places.
func (e *Engine) likeness(ctx context.Context, old *qmp.Client, r *nodedir.Record) (*argv.Machine, error) {
	guest, err := qemu.Guest()
	if err != nil {
		return nil, err
	}
	from, err := kernel.Files(ctx, e.Store, r.Kernel, guest)
	if err != nil {
		return nil, err
	}
	accel, _ := e.accel()
	line := &argv.Machine{Node: &r.Node, Boot: from, Accel: accel, Incoming: true}
	line.Type, line.Slots, err = ask(ctx, old)
	return line, err
}

// ask gives the type of a machine that runs, and where its devices are.
func ask(ctx context.Context, q *qmp.Client) (kind string, slots argv.Slots, err error) {
	var model string
	if err := q.Do(ctx, "qom-get", map[string]string{"path": "/machine", "property": "type"}, &model); err != nil {
		return "", slots, err
	}
	if kind, err = argv.TypeOf(model); err != nil {
		return "", slots, err
	}
	var buses []argv.Bus
	err = q.Do(ctx, "query-pci", nil, &buses)
	return kind, argv.SlotsOf(buses), err
}

// startNext starts virtiofsd and QEMU of the machine that takes over. It has the same record of the console, and the same links.
func (e *Engine) startNext(ctx context.Context, m, next machine, r *nodedir.Record, line *argv.Machine) (err error) {
	open := handed{}
	defer func() { err = errors.Join(err, open.close()) }()
	if err := m.inherit(open, r); err != nil {
		return err
	}
	root, err := e.share(ctx, next, r, m.sharer())
	if err != nil {
		return err
	}
	open[argv.Share] = root
	if err := e.bring(ctx, next, r); err != nil {
		return err
	}
	if err := next.handSockets(open); err != nil {
		return err
	}
	if err := e.launch(ctx, next, r, line, open); err != nil {
		return err
	}
	return next.pinEach(ctx, &r.Node)
}

// pair is a connection with both its ends.
func pair() (one, other *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "state"), os.NewFile(uintptr(fds[1]), "state"), nil
}

// outdated gives the programs of a running machine that this host has others of by now.
func (m machine) outdated() (names []string) {
	for _, p := range []struct {
		comm string
		find func() (string, error)
	}{{qemuComm, qemu.System}, {shareComm, qemu.Virtiofsd}} {
		if path, err := p.find(); err == nil && !m.runs(p.comm, path) {
			names = append(names, filepath.Base(path))
		}
	}
	return names
}
