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

// A freezer lets machines stand still, and go on.
type freezer struct{ guests *guests }

// Flush lets the guest write to its files what was mapped and changed in memory. All else it has
// written: virtiofs has no cache of what is to be written.
func (f freezer) Flush(ctx context.Context, ref engine.Ref) {
	m := machineOf(f.guests.nodes, ref)
	if !m.running() || m.still() || m.HasDisk() && !m.Visited() {
		return
	}
	vm.Flush(ctx, f.guests.Runner(ref))
	if !m.HasDisk() {
		f.guests.unburden(ctx, m) // a state that is kept is taken from virtiofsd, too
	}
}

// Freeze lets a machine stand still: its processors by QEMU's doing, with the guest's clock, so
// that it does not find that much time has gone; then all of it.
func (f freezer) Freeze(ctx context.Context, ref engine.Ref) error {
	m := machineOf(f.guests.nodes, ref)
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
		err = errors.Join(err, f.goOn(ctx, m))
		return m.Fails("does not stand still", err)
	}
	return nil
}

// Thaw lets a machine go on.
func (f freezer) Thaw(ctx context.Context, ref engine.Ref) error {
	m := machineOf(f.guests.nodes, ref)
	if err := f.thaw(ctx, m); err != nil {
		return m.Fails("stays frozen", err)
	}
	return m.Group().AwaitFrost(ctx, false)
}

// halted is a file that is there while the processors of a machine stand still by QEMU's doing.
func (m machine) halted() string { return m.File("halted") }

// pausing is how long QEMU may take to let the processors stand still. All other nodes of a
// snapshot wait for it.
const pausing = 3 * time.Second

// pause lets the processors of a machine stand still. Whoever comes after a kill finds it marked. A
// machine that stood still before for another reason is left to it.
func (m machine) pause(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, pausing, errors.New("its monitor does not answer"))
	defer cancel()
	return m.ask(ctx, func(q *qmp.Client) error {
		if err := os.WriteFile(m.halted(), nil, 0o600); err != nil {
			return err
		}
		if err := q.Do(ctx, "stop", nil, nil); err != nil {
			return err // it may do it yet
		}
		status, err := q.Status(ctx)
		if err == nil && status != qmp.Paused {
			return os.Remove(m.halted())
		}
		return err
	})
}

// still reports whether a machine stands still by somebody's doing.
func (m machine) still() bool {
	_, err := os.Lstat(m.halted())
	return err == nil || m.Group().Frozen()
}

// thaw lets a machine go on that is frozen or halted, whoever did that.
func (f freezer) thaw(ctx context.Context, m machine) error {
	if err := m.Frost().Thaw(); err != nil {
		return err
	}
	return f.goOn(ctx, m)
}

// goOn lets a machine go on whose processors were halted, whoever did that.
func (f freezer) goOn(ctx context.Context, m machine) error {
	if _, err := os.Lstat(m.halted()); err != nil {
		return nil
	}
	if err := m.unhalt(); err != nil {
		return err
	}
	f.guests.stir(ctx, m)
	return nil
}

// unhalt lets the processors of a machine go on.
func (m machine) unhalt() error {
	if m.running() {
		ctx, cancel := context.WithTimeoutCause(context.Background(), answering, errors.New("its monitor does not answer"))
		defer cancel()
		if err := m.order(ctx, "cont"); err != nil {
			return err
		}
	}
	return os.Remove(m.halted())
}

// halt does some work while only the processors of a machine stand still that was frozen.
func (m machine) halt(ctx context.Context, work func(*qmp.Client) error) error {
	if err := os.WriteFile(m.halted(), nil, 0o600); err != nil {
		return err
	}
	if err := m.Group().SetFrozen(false); err != nil {
		return err
	}
	return m.ask(ctx, func(q *qmp.Client) error {
		if err := q.Do(ctx, "stop", nil, nil); err != nil {
			return err
		}
		return work(q)
	})
}
