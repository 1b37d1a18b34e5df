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

// Flush lets the guest write to its files what was mapped and changed in memory. All else it has written: virtiofs has no cache of what is to be written.
func (e *Engine) Flush(ctx context.Context, ref engine.Ref) {
	m := e.machine(ref)
	if !m.running() || m.still() || m.HasDisk() && !m.Visited() {
		return
	}
	vm.Flush(ctx, e.Runner(ref))
	if !m.HasDisk() {
		e.unburden(ctx, m) // a state that is kept is taken from virtiofsd, too
	}
}

// Freeze lets a machine stand still: its processors by QEMU's doing, with the guest's clock, so that it does not find that much time has gone; then all of it.
func (e *Engine) Freeze(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	if !m.running() {
		return engine.NotRunning(ref)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !m.Group().Frozen() {
		_ = m.pause(ctx) // one whose QEMU does not answer stands still all the same
	}
	if err := m.Frost().Freeze(ctx); err != nil {
		err = errors.Join(err, e.goOn(ctx, m))
		return m.Fails("does not stand still", err)
	}
	return nil
}

// Thaw lets a machine go on.
func (e *Engine) Thaw(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	if err := e.thaw(ctx, m); err != nil {
		return m.Fails("stays frozen", err)
	}
	return m.Group().AwaitFrost(ctx, false)
}

// pausing is how long QEMU may take to let the processors stand still. All other nodes of a snapshot wait for it.
const pausing = 3 * time.Second

// pause lets the processors of a machine stand still. Whoever comes after a kill finds it marked. A machine that stood still before for another reason is left to it.
func (m machine) pause(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, pausing, errors.New("its monitor does not answer"))
	defer cancel()
	q, err := m.monitor(ctx)
	if err != nil {
		return err
	}
	defer q.Close() //nolint:errcheck // it has answered
	if err := os.WriteFile(m.halted(), nil, 0o600); err != nil {
		return err
	}
	if err := q.Do(ctx, "stop", nil, nil); err != nil {
		return err // it may do it yet
	}
	is, err := q.Status(ctx)
	if err == nil && is != qmp.Paused {
		return os.Remove(m.halted())
	}
	return err
}

// still reports whether a machine stands still by somebody's doing.
func (m machine) still() bool {
	_, err := os.Lstat(m.halted())
	return err == nil || m.Group().Frozen()
}

// thaw lets a machine go on that is frozen or halted, whoever did that.
func (e *Engine) thaw(ctx context.Context, m machine) error {
	if err := m.Frost().Thaw(); err != nil {
		return err
	}
	return e.goOn(ctx, m)
}
