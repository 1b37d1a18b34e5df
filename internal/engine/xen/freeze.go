package xen

import (
	"context"
	"errors"
	"os"

	"orrery/internal/engine"
	"orrery/internal/engine/vm"
	"orrery/internal/host/xl"
)

// Flush makes the guest write cached changes to its files.
func (e *Engine) Flush(ctx context.Context, ref engine.Ref) {
	m := e.machine(ref)
	if !m.running() || m.Group().Frozen() {
		return
	}
	vm.Flush(ctx, e.Runner(ref))
}

// Freeze pauses a domain and then freezes its QEMU. Until then, QEMU writes what the guest has
// already requested.
func (e *Engine) Freeze(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	if !m.running() {
		return engine.NotRunning(ref)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.Group().Frozen() {
		return m.Group().WaitFrozen(ctx, true)
	}
	err := os.WriteFile(m.FreezingFile(), nil, 0o600)
	if err == nil {
		err = xl.Run(ctx, "pause", m.domain())
	}
	if err == nil {
		err = m.Freezer().Freeze(ctx)
	}
	if err == nil {
		return nil
	}
	err = errors.Join(err, m.resume(context.WithoutCancel(ctx)))
	return m.Problem("could not be frozen", err)
}

// Thaw lets a frozen domain continue.
func (e *Engine) Thaw(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	if err := m.thaw(ctx); err != nil {
		return m.Problem("is still frozen", err)
	}
	return nil
}

// frozen reports whether the node is frozen, or was marked by a freeze that was killed. In that
// case Xen may have paused the domain.
func (m machine) frozen() bool {
	_, err := os.Lstat(m.FreezingFile())
	return err == nil || m.Group().Frozen()
}

// thaw lets a frozen domain continue, even if another process froze it.
func (m machine) thaw(ctx context.Context) error {
	if !m.frozen() {
		return nil
	}
	return m.resume(ctx)
}

// resume lets a domain continue that may be frozen. It thaws QEMU first, because Xen may need it, and
// then unpauses the guest. It removes the mark last, so that the next run after a kill does the
// same.
func (m machine) resume(ctx context.Context) error {
	if m.Group().Frozen() {
		if err := m.Group().SetFrozen(false); err != nil {
			return err
		}
		if err := m.Group().WaitFrozen(ctx, false); err != nil {
			return err
		}
	}
	if m.running() {
		if err := m.unpause(ctx); err != nil {
			return err
		}
	}
	return m.Freezer().Thaw()
}

// unpause unpauses a domain. Xen refuses that for a domain that is not paused, which is no error
// here.
func (m machine) unpause(ctx context.Context) error {
	err := xl.Run(ctx, "unpause", m.domain())
	if err == nil || xl.IsNotFound(err) {
		return nil
	}
	all, asked := xl.Domains(ctx)
	for _, d := range all {
		if d.Name == m.domain() && !d.State.Paused() {
			return nil
		}
	}
	return errors.Join(err, asked)
}
