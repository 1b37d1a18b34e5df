package kvm

import (
	"context"
	"errors"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/kvm/recorder"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/host"
	"orrery/internal/host/qemu"
	"orrery/internal/image/kernel"
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
	if m.running() && !m.rootless() {
		if err := e.thaw(ctx, m); err != nil || !writes(&r.Node) {
			return err
		}
		return m.feed(ctx)
	}
	if err := e.versions.Lacks(ctx); err != nil {
		return err
	}
	if err := m.Group().Kill(ctx); err != nil { // what is left of a machine that died
		return err
	}
	if err := e.tidy(ctx, m); err != nil {
		return err
	}
	start := e.start
	if r.Imported() {
		start = e.startDisk
	}
	return m.WhileStarting(func() error {
		err := m.limit(&r.Node, 1)
		if err == nil {
			err = start(ctx, m, r)
		}
		if err != nil {
			err = errors.Join(err, recorder.End(ctx, m.Group()))
			return errors.Join(err, e.tidy(ctx, m))
		}
		return nil
	})
}

// start makes what the machine stands on, the outermost first, then lets it boot.
func (e *Engine) start(ctx context.Context, m machine, r *nodedir.Record) (err error) {
	from, err := vm.BootFiles(ctx, e.Nodes, r)
	if err != nil {
		return err
	}
	if err := drives(&r.Node, from); err != nil {
		return err
	}
	accel, _ := e.accel()
	if err := m.ProvideDisks(ctx, r); err != nil {
		return err
	}
	if err := e.tellAll(r); err != nil {
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
	open := handed{}
	defer func() { err = errors.Join(err, open.close()) }()
	if err := m.record(ctx, r, open); err != nil {
		return err
	}
	if err := open.copy(argv.Share, root); err != nil {
		return err
	}
	if err := m.handSockets(open); err != nil {
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
	if state != nil {
		if err := m.goOnFrom(ctx, state); err != nil {
			return m.StartProblem(err, "")
		}
	}
	if err := m.growImages(ctx, r); err != nil { // those of a state are the machine's once it has that
		return err
	}
	if err := m.pin(ctx, r); err != nil {
		return err
	}
	up := func(ctx context.Context) error { return e.agents.Await(ctx, m.Machine, patience(accel), m.awaitOff) }
	if err := m.unlessHalted(ctx, up); err != nil {
		return m.StartProblem(err, m.lastWords(ctx))
	}
	if state != nil {
		e.stir(ctx, m)
	}
	if r.VM.Disk != "" {
		if err := e.keepSeen(m.Ref, shown); err != nil {
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

// patience is how long a guest may take to come up.
func patience(accel string) vm.Patience {
	if accel != observe.KVM || qemu.Nested() {
		return vm.Patience{Agent: emulated * booting, Orders: emulated * ordering}
	}
	return vm.Patience{Agent: booting, Orders: ordering}
}

// haltInterval is how often QEMU is asked whether a machine that boots stands still.
const haltInterval = time.Second

// errStarved is why nobody waits any longer for a machine that boots.
var errStarved = problem.New(problem.Failed, "its host has no room for what it writes to its disks").
	Try("make room there, then run the same command again")

// errPanicked is the same.
var errPanicked = problem.New(problem.Failed, "its kernel has panicked").
	Try("orrery console NODE --log shows all that was recorded of its console")

// errRootless is the same.
var errRootless = problem.New(problem.Failed, "virtiofsd, which shows it its root, has ended").
	Try("run the same command again; the host's kernel tells whether it was short of memory (dmesg)")

// unlessHalted waits for the guest of a machine that boots, and ends the wait when the machine stands still for want of room
// because its kernel has panicked, or it has no root any more.
func (m machine) unlessHalted(ctx context.Context, wait func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for host.Pause(ctx, haltInterval) == nil {
			switch m.runState(ctx) {
			case qmp.Starved:
				cancel(errStarved)
			case qmp.Panicked:
				cancel(errPanicked)
			}
			if m.rootless() {
				cancel(errRootless)
			}
		}
	}()
	err := wait(ctx)
	for _, cause := range []error{errStarved, errPanicked, errRootless} {
		if errors.Is(context.Cause(ctx), cause) {
			return cause
		}
	}
	return err
}
