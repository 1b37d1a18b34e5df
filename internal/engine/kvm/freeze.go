package kvm

import (
	"context"
	"errors"
	"os"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/vm"
)

// A freezer freezes and thaws machines.
type freezer struct{ guests *guests }

// Flush makes the guest write mapped memory that was changed to its files. Everything else is
// written already, because virtiofs has no write-back cache.
func (f freezer) Flush(ctx context.Context, ref engine.Ref) {
	m := machineOf(f.guests.nodes, ref)
	if !m.running() || m.frozenOrHalted() || m.HasDisk() && !m.Visited() {
		return
	}
	vm.Flush(ctx, f.guests.Runner(ref))
	if !m.HasDisk() {
		f.guests.forgetUnusedFiles(ctx, m) // saving a state also needs virtiofsd to find every file
	}
}

// Freeze first lets QEMU stop the processors and thereby the guest's clock, so that the guest does
// not notice the time that passes. Then it freezes all processes of the machine.
func (f freezer) Freeze(ctx context.Context, ref engine.Ref) error {
	m := machineOf(f.guests.nodes, ref)
	if !m.running() {
		return engine.NotRunning(ref)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !m.Group().Frozen() {
		_ = m.pause(ctx) // a machine whose QEMU does not answer is frozen all the same
	}
	if err := m.Freezer().Freeze(ctx); err != nil {
		err = errors.Join(err, f.resume(ctx, m))
		return m.Problem("could not be frozen", err)
	}
	return nil
}

// Thaw lets a frozen machine continue.
func (f freezer) Thaw(ctx context.Context, ref engine.Ref) error {
	m := machineOf(f.guests.nodes, ref)
	if err := f.thaw(ctx, m); err != nil {
		return m.Problem("is still frozen", err)
	}
	return m.Group().WaitFrozen(ctx, false)
}

// haltedFile returns the path of a file that exists while QEMU has stopped the processors of a machine.
func (m machine) haltedFile() string { return m.File("halted") }

// pauseTimeout limits how long QEMU may take to stop the processors. All other nodes of a snapshot wait
// for it.
const pauseTimeout = 3 * time.Second

// pause stops the processors of a machine. It marks the machine first, so that the next run finds
// the mark after a kill. It removes the mark if the machine was stopped before for another reason.
func (m machine) pause(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, pauseTimeout, errors.New("its monitor does not answer"))
	defer cancel()
	return m.withMonitor(ctx, func(q *qmp.Client) error {
		if err := os.WriteFile(m.haltedFile(), nil, 0o600); err != nil {
			return err
		}
		if err := q.Do(ctx, "stop", nil, nil); err != nil {
			return err // keep the mark: QEMU may still stop the processors
		}
		status, err := q.Status(ctx)
		if err == nil && status != qmp.Paused {
			return os.Remove(m.haltedFile())
		}
		return err
	})
}

// frozenOrHalted reports whether a machine is frozen or halted.
func (m machine) frozenOrHalted() bool {
	_, err := os.Lstat(m.haltedFile())
	return err == nil || m.Group().Frozen()
}

// thaw lets a frozen or halted machine continue, even if another process froze it.
func (f freezer) thaw(ctx context.Context, m machine) error {
	if err := m.Freezer().Thaw(); err != nil {
		return err
	}
	return f.resume(ctx, m)
}

// resume lets a machine continue whose processors were halted, and asks its guest for a kick.
func (f freezer) resume(ctx context.Context, m machine) error {
	if _, err := os.Lstat(m.haltedFile()); err != nil {
		return nil
	}
	if err := m.startProcessors(); err != nil {
		return err
	}
	f.guests.ensureKick(ctx, m)
	return nil
}

// startProcessors starts the processors of a machine and removes the mark.
func (m machine) startProcessors() error {
	if m.running() {
		ctx, cancel := context.WithTimeoutCause(context.Background(), monitorTimeout,
			errors.New("its monitor does not answer"))
		defer cancel()
		if err := m.command(ctx, "cont"); err != nil {
			return err
		}
	}
	return os.Remove(m.haltedFile())
}

// whileHalted thaws a frozen machine and calls work while only its processors are stopped.
func (m machine) whileHalted(ctx context.Context, work func(*qmp.Client) error) error {
	if err := os.WriteFile(m.haltedFile(), nil, 0o600); err != nil {
		return err
	}
	if err := m.Group().SetFrozen(false); err != nil {
		return err
	}
	return m.withMonitor(ctx, func(q *qmp.Client) error {
		if err := q.Do(ctx, "stop", nil, nil); err != nil {
			return err
		}
		return work(q)
	})
}
