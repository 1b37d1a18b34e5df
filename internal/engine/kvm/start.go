package kvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/process"
	"orrery/internal/host/qemu"
	"orrery/internal/image/kernel"
	"orrery/internal/network"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// booting is how long a guest may take until its agent answers, and ordering until its systemd takes orders. In emulation it may take emulated times as long, and so it may by
// KVM on a host that is a virtual machine itself: that may be an emulated one.
const (
	booting  = time.Minute
	ordering = 30 * time.Second
	emulated = 6
)

// Start boots a node.
func (e *Engine) Start(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	r, err := e.Record(ref)
	if err != nil {
		return err
	}
	if m.running() {
		if err := m.thaw(); err != nil || len(r.VM.Drives()) == 0 {
			return err
		}
		return m.feed(ctx)
	}
	if err := e.versions().Lacks(ctx); err != nil {
		return err
	}
	if err := m.group().Kill(ctx); err != nil { // what is left of a machine that died
		return err
	}
	if err := e.tidy(ctx, m); err != nil {
		return err
	}
	if err := os.WriteFile(m.starting(), nil, 0o600); err != nil {
		return err
	}
	defer os.Remove(m.starting()) //nolint:errcheck // what is left of it ends the node at the next sweep
	start := e.start
	if r.Imported() {
		start = e.startDisk
	}
	if err := start(ctx, m, r); err != nil {
		stopped := context.WithoutCancel(ctx)
		err = errors.Join(err, m.group().Kill(stopped))
		return errors.Join(err, e.tidy(stopped, m))
	}
	return nil
}

// start makes what the machine stands on, the outermost first, then lets it boot.
func (e *Engine) start(ctx context.Context, m machine, r *nodedir.Record) (err error) {
	guest, err := qemu.Guest()
	if err != nil {
		return err
	}
	from, err := kernel.Files(ctx, e.Store, r.Kernel, guest)
	if err != nil {
		return err
	}
	if err := drives(&r.Node, from); err != nil {
		return err
	}
	accel, _ := e.accel()
	if err := network.Guard(ctx, network.Ports(&r.Node)); err != nil {
		return err
	}
	if err := e.provideDisks(ctx, m, r); err != nil {
		return err
	}
	shown := seen(nil)
	if r.VM.Disk != "" {
		if shown, err = e.tellStack(ctx, r); err != nil {
			return err
		}
	}
	root, err := e.share(ctx, m, r, 0)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // QEMU has its own
	if err := e.bring(ctx, m, r); err != nil {
		return err
	}
	log, err := recorder()
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // QEMU has its own
	record, err := again(process.Host.File(os.Getpid(), fmt.Sprintf("fd/%d", log.Fd())))
	if err != nil {
		return err
	}
	defer record.Close() //nolint:errcheck // nothing was written
	open := handed{}
	defer func() { err = errors.Join(err, open.close()) }()
	if err := m.hand(open, log, root); err != nil {
		return err
	}
	if err := open.lay(r); err != nil {
		return err
	}
	if err := e.openDisks(open, r); err != nil {
		return err
	}
	line := &argv.Machine{Node: &r.Node, Boot: from, Accel: accel}
	state, used, err := m.remembered(line)
	if err != nil {
		return err
	}
	defer used()
	if err := e.launch(ctx, m, r, line, open); err != nil {
		return err
	}
	if err := m.growImages(ctx, r); err != nil {
		return err
	}
	if state != nil {
		if err := m.goOnFrom(ctx, state); err != nil {
			return m.startProblem(err, "")
		}
	}
	if err := m.group().Limit(r.Name, bounds(&r.Node)); err != nil {
		return err
	}
	if err := m.pinEach(ctx, &r.Node); err != nil {
		return m.startProblem(err, "")
	}
	if err := e.awaitGuest(ctx, m, accel); err != nil {
		return m.startProblem(err, lastWords(m.keep(record)))
	}
	if r.VM.Disk != "" {
		if err := e.keepSeen(m.ref, shown); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// drives reports whether the guest's kernel has a driver for its network cards.
func drives(n *spec.Node, from *kernel.Boot) error {
	driver := map[string]string{site.E1000: "e1000", site.RTL8139: "8139cp"}[n.VM.Model]
	if driver == "" || len(n.NICs) == 0 || from.Has(driver) {
		return nil
	}
	return problem.New(problem.Unable, "node %s: its kernel, %s, has no driver %s for a network card of the model %s", n.Name, from.Release, driver, n.VM.Model).
		Try(`write model = "virtio"`)
}

// awaitGuest waits until the agent answers and the guest's systemd listens to systemctl(1). A guest that does not come so far is the business of whoever gives
// it orders.
func (e *Engine) awaitGuest(ctx context.Context, m machine, accel string) error {
	answer, orders := booting, ordering
	if accel != observe.KVM || qemu.Nested() {
		answer, orders = emulated*booting, emulated*ordering
	}
	waiting, cancel := context.WithTimeoutCause(ctx, answer, fmt.Errorf("its agent has not answered within %v", answer))
	defer cancel()
	waiting, fail := context.WithCancelCause(waiting)
	defer fail(nil)
	go func() {
		if m.awaitOff(waiting) == nil {
			fail(errors.New("it was switched off before its agent answered"))
		}
	}()
	agent, err := e.agents.Of(waiting, m.ref, m.run)
	if err != nil {
		if why := context.Cause(waiting); why != nil {
			err = why
		}
		return err
	}
	listening, stop := context.WithTimeout(ctx, orders)
	defer stop()
	_ = agent.Await(listening, "/run/systemd/private")
	if !m.running() {
		return errors.New("it was switched off before its init was up")
	}
	return nil
}

func (m machine) startProblem(err error, detail string) error {
	if detail != "" {
		err = fmt.Errorf("%w\n%s", err, detail)
	}
	return problem.New(problem.Failed, "node %s does not start", m.ref.Name).At(m.Path()).Because(err).
		Try("orrery doctor tells what this host lacks")
}
