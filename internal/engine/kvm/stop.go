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

// Stop lets the guest power off and, when ctx has a deadline and it passes, ends the machine.
func (e *Engine) Stop(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	if err := m.Frost().Thaw(); err != nil {
		return err
	}
	_ = e.goOn(ctx, m) // one that does not is ended when its time is up
	if err := e.powerOff(ctx, m); err != nil {
		return m.Fails("does not stop", err)
	}
	return e.tidy(ctx, m)
}

// end ends all that runs of a machine, whether it has come up or not, and removes what it had.
func (e *Engine) end(ctx context.Context, m machine) error {
	err := recorder.End(ctx, m.Group())
	return errors.Join(err, e.tidy(ctx, m))
}

// powerOff lets the guest shut down.
func (e *Engine) powerOff(ctx context.Context, m machine) error {
	return m.ShutDown(ctx, func() error { return e.letOff(ctx, m) }, func() error {
		return recorder.End(ctx, m.Group()) // virtiofsd ends with QEMU, or is left of a machine that died
	})
}

// letOff asks a machine that runs to shut down, and waits until it has ended.
func (e *Engine) letOff(ctx context.Context, m machine) error {
	switch {
	case m.runState(ctx) == qmp.Panicked:
		return nil // nothing in it can shut down
	case m.rootless():
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rootlessTimeout)
		defer cancel()
	default:
		_ = m.feed(ctx) // one that stands still for want of room cannot shut down before it goes on
	}
	if m.running() {
		if err := e.askOff(ctx, m); err != nil {
			return err
		}
	}
	return m.awaitOff(ctx)
}

// rootlessTimeout is how long a machine without its root may take to write what its disks have not
// got yet. It cannot shut down in order, and mostly not at all.
const rootlessTimeout = 10 * time.Second

// Destroy ends the machine, if it runs: whoever wants it to shut down in order stops it first.
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

// tidy removes what a machine had while it ran: links, sockets, the control group. What it was lent goes
// back, and what it has printed is kept. It has time of its own.
func (e *Engine) tidy(ctx context.Context, m machine) error {
	ctx, cancel := engine.Cleanup(ctx)
	defer cancel()
	e.leave(m.Ref)
	_ = os.Remove(m.halted()) // the next one begins to run
	record.Keep(m.Run, m.console())
	err := m.Unlink()
	cgroup.Remove(m.Group())
	err = errors.Join(err, pci.Here.Return(ctx, m.holder()))
	return errors.Join(err, m.RemoveRun())
}
