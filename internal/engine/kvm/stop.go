package kvm

import (
	"context"
	"errors"
	"os"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/kvm/record"
	"orrery/internal/host/cgroup"
	"orrery/internal/host/pci"
)

// Stop asks the guest to power off. If ctx has a deadline and it passes, Stop kills the machine.
func (e *Engine) Stop(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	if err := m.Freezer().Thaw(); err != nil {
		return err
	}
	_ = e.resume(ctx, m) // ignore the error: a machine that does not continue is killed after the deadline
	if err := e.powerOff(ctx, m); err != nil {
		return m.Problem("does not stop", err)
	}
	return e.cleanUp(ctx, m)
}

// kill kills all processes of a machine, whether it has come up or not, and cleans up.
func (e *Engine) kill(ctx context.Context, m machine) error {
	err := killRecorders(ctx, m.Group())
	return errors.Join(err, e.cleanUp(ctx, m))
}

// powerOff shuts the guest down.
func (e *Engine) powerOff(ctx context.Context, m machine) error {
	return m.ShutDown(ctx, func() error { return e.shutDown(ctx, m) }, func() error {
		return killRecorders(ctx, m.Group()) // virtiofsd ends with QEMU, or is left of a machine that died
	})
}

// shutDown asks a running machine to shut down, and waits until it has ended.
func (e *Engine) shutDown(ctx context.Context, m machine) error {
	switch {
	case m.runState(ctx) == qmp.Panicked:
		return nil // a panicked guest cannot shut down
	case m.rootless():
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rootlessTimeout)
		defer cancel()
	default:
		_ = m.resumeStarved(ctx) // a machine that stopped for lack of room must continue to shut down
	}
	if m.running() {
		if err := e.requestPowerOff(ctx, m); err != nil {
			return err
		}
	}
	return m.awaitOff(ctx)
}

// rootlessTimeout limits how long a machine without its root may take to write its buffered data to
// its disks. Mostly it cannot shut down at all, and never in order.
const rootlessTimeout = 10 * time.Second

// Destroy kills the machine if it runs. Callers that want an orderly shutdown call Stop first.
func (e *Engine) Destroy(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	if err := m.Freezer().Thaw(); err != nil {
		return err
	}
	if err := m.Group().Kill(ctx); err != nil {
		return m.Problem("could not be killed", err)
	}
	if err := e.cleanUp(ctx, m); err != nil {
		return err
	}
	cgroup.RemoveEmpty(ref.Site)
	if err := wipeDevices(ctx, m); err != nil {
		return err
	}
	return e.Remove(ref)
}

// cleanUp removes what a machine had while it ran: links, sockets and the control group. It returns
// PCI functions to the host and saves the console output. It does not end with ctx.
func (e *Engine) cleanUp(ctx context.Context, m machine) error {
	ctx, cancel := engine.Cleanup(ctx)
	defer cancel()
	e.disconnect(m.Ref)
	_ = os.Remove(m.haltedFile()) // the next machine is not halted
	record.Save(m.Run, m.console())
	err := m.RemoveLinks()
	cgroup.Remove(m.Group())
	err = errors.Join(err, pci.Local.Release(ctx, m.pciOwner()))
	return errors.Join(err, m.RemoveRun())
}
