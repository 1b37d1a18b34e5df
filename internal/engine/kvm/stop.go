package kvm

import (
	"context"
	"errors"
	"os"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/kvm/record"
	"orrery/internal/engine/kvm/recorder"
	"orrery/internal/host/cgroup"
	"orrery/internal/host/pci"
)

// Stop asks the guest to power off. If ctx has a deadline and it passes, Stop kills the machine.
func (e *Engine) Stop(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	if err := m.Frost().Thaw(); err != nil {
		return err
	}
	_ = e.goOn(ctx, m) // ignore the error: a machine that does not continue is killed after the deadline
	if err := e.powerOff(ctx, m); err != nil {
		return m.Fails("does not stop", err)
	}
	return e.tidy(ctx, m)
}

// end kills all processes of a machine, whether it has come up or not, and cleans up.
func (e *Engine) end(ctx context.Context, m machine) error {
	err := recorder.End(ctx, m.Group())
	return errors.Join(err, e.tidy(ctx, m))
}

// powerOff shuts the guest down.
func (e *Engine) powerOff(ctx context.Context, m machine) error {
	return m.ShutDown(ctx, func() error { return e.letOff(ctx, m) }, func() error {
		return recorder.End(ctx, m.Group()) // virtiofsd ends with QEMU, or is left of a machine that died
	})
}

// letOff asks a running machine to shut down, and waits until it has ended.
func (e *Engine) letOff(ctx context.Context, m machine) error {
	switch {
	case m.runState(ctx) == qmp.Panicked:
		return nil // a panicked guest cannot shut down
	case m.rootless():
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rootlessTimeout)
		defer cancel()
	default:
		_ = m.feed(ctx) // a machine that stopped for lack of room must continue to shut down
	}
	if m.running() {
		if err := e.askOff(ctx, m); err != nil {
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
	if err := m.Frost().Thaw(); err != nil {
		return err
	}
	if err := m.Group().Kill(ctx); err != nil {
		return m.Fails("does not end", err)
	}
	if err := e.tidy(ctx, m); err != nil {
		return err
	}
	cgroup.RemoveEmpty(ref.Site)
	if err := leaveDevices(ctx, m); err != nil {
		return err
	}
	return e.Remove(ref)
}

// tidy removes what a machine had while it ran: links, sockets and the control group. It returns
// PCI functions to the host and saves the console output. It does not end with ctx.
func (e *Engine) tidy(ctx context.Context, m machine) error {
	ctx, cancel := engine.Cleanup(ctx)
	defer cancel()
	e.leave(m.Ref)
	_ = os.Remove(m.halted()) // the next machine is not halted
	record.Keep(m.Run, m.console())
	err := m.Unlink()
	cgroup.Remove(m.Group())
	err = errors.Join(err, pci.Here.Return(ctx, m.holder()))
	return errors.Join(err, m.RemoveRun())
}
