package kvm

import (
	"context"
	"errors"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/qmp"
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

// booting limits how long a guest may take until its agent answers, and ordering until its systemd
// accepts commands. Both are engine.EmulationFactor times as long in emulation, and with KVM on a host
// that is itself a virtual machine, because that may be emulated.
const (
	agentTimeout   = time.Minute
	systemdTimeout = 30 * time.Second
)

// Start boots a node.
func (e *Engine) Start(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	r, err := e.Record(ref)
	if err != nil {
		return err
	}
	if m.running() && !m.rootless() {
		if err := e.thaw(ctx, m); err != nil || !r.WritesDisks() {
			return err
		}
		return m.resumeStarved(ctx)
	}
	if err := e.versions.CheckRequirements(ctx); err != nil {
		return err
	}
	if err := m.Group().Kill(ctx); err != nil { // what is left of a machine that died
		return err
	}
	if err := e.cleanUp(ctx, m); err != nil {
		return err
	}
	return m.Boot(func() error { return e.start(ctx, m, r) }, func() error { return e.kill(ctx, m) })
}

// start boots a machine, or resumes it from saved memory, and waits until its guest is up.
func (e *Engine) start(ctx context.Context, m machine, r *nodedir.Record) (err error) {
	if err := applyLimits(m, &r.Node, 1); err != nil {
		return err
	}
	l := newLaunch(e.Nodes, e.programs, m, r)
	defer func() { err = errors.Join(err, l.close()) }()
	shown, err := l.boot(ctx)
	if err != nil {
		return err
	}
	if r.Disk.Guest == site.NoGuest {
		return ctx.Err()
	}
	up := func(ctx context.Context) error { return e.await(ctx, m, l.line.Accel) }
	if err := unlessHalted(ctx, m, up); err != nil {
		return m.StartProblem(err, serial{m}.lastLines(ctx))
	}
	if l.line.Incoming {
		e.ensureKick(ctx, m)
	}
	if r.Imported() {
		return errors.Join(ctx.Err(), e.ejectSeed(ctx, m))
	}
	if r.VM.Disk != "" {
		if err := shown.store(m); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// checkNICDriver returns a problem if the guest's kernel has no driver for its network cards.
func checkNICDriver(n *spec.Node, from *kernel.Boot) error {
	driver := map[string]string{site.E1000: "e1000", site.RTL8139: "8139cp"}[n.VM.Model]
	if driver == "" || len(n.NICs) == 0 || from.Has(driver) {
		return nil
	}
	return problem.New(problem.Unable, "node %s: its kernel, %s, has no driver %s for a network card of the model %s",
		n.Name, from.Release, driver, n.VM.Model).
		Try(`write model = "virtio"`)
}

// bootTimeouts returns how long a guest may take to come up.
func bootTimeouts(accel string) vm.Timeouts {
	if accel != observe.KVM || qemu.Nested() {
		return vm.Timeouts{Agent: engine.EmulationFactor * agentTimeout, Orders: engine.EmulationFactor * systemdTimeout}
	}
	return vm.Timeouts{Agent: agentTimeout, Orders: systemdTimeout}
}

// haltInterval is the interval at which QEMU is asked whether a booting machine has stopped.
const haltInterval = time.Second

// errStarved ends the wait for a booting machine whose host has no room.
var errStarved = problem.New(problem.Failed, "its host has no space left for its disks").
	Try("free space on the host, then run the same command again")

// errPanicked ends the wait for a booting machine whose kernel has panicked.
var errPanicked = problem.New(problem.Failed, "its kernel has panicked").
	Try("orrery console NODE --log shows its recorded console")

// errRootless ends the wait for a booting machine that has lost its root.
var errRootless = problem.New(problem.Failed, "virtiofsd, which serves its root, has exited").
	Try("run the same command again; dmesg on the host shows whether memory was short")

// unlessHalted calls wait, and cancels it when the machine stops because the host has no room, its
// kernel panics, or virtiofsd ends. Then it returns that cause.
func unlessHalted(ctx context.Context, m machine, wait func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for host.Sleep(ctx, haltInterval) == nil {
			switch m.runState(ctx) {
			case qmp.IOError:
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
