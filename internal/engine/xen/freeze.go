package xen

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/cgroup"
	"orrery/internal/host"
	"orrery/internal/host/xl"
	"orrery/internal/problem"
)

// flush is how long a guest may take to write what it has in memory of its files. What it has not written then stays there: no promise is broken that a container,
// or a power cut, would keep.
const flush = 10 * time.Second

// Flush lets the guest write to its files what it has in memory of them.
func (e *Engine) Flush(ctx context.Context, ref engine.Ref) {
	m := e.machine(ref)
	if !m.running() || m.group().Frozen() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flush)
	defer cancel()
	_ = e.Runner(ref).Run(ctx, host.Command{Args: []string{"sync"}})
}

// Freeze lets a domain stand still, and then its QEMU: what the guest has asked for already is written as long as that goes on.
func (e *Engine) Freeze(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	if !m.running() {
		return engine.NotRunning(ref)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.group().Frozen() {
		return m.group().AwaitFrost(ctx, true)
	}
	err := os.WriteFile(m.freezing(), nil, 0o600)
	if err == nil {
		err = xl.Do(ctx, "pause", m.domain())
	}
	if err == nil {
		err = m.frost().Freeze(ctx)
	}
	if err == nil {
		return nil
	}
	err = errors.Join(err, e.thaw(context.WithoutCancel(ctx), m))
	return problem.New(problem.Failed, "node %s does not stand still", ref.Name).At(m.Path()).Because(err)
}

// Thaw lets a domain go on.
func (e *Engine) Thaw(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	if err := e.thaw(ctx, m); err != nil {
		return problem.New(problem.Failed, "node %s stays frozen", ref.Name).At(m.Path()).Because(err)
	}
	return nil
}

func (m machine) frost() cgroup.Frost { return cgroup.Frost{Group: m.group(), Mark: m.freezing()} }

// thaw lets a frozen domain go on, whoever froze it: its QEMU first, which Xen may ask, then the guest. The mark goes last, so that who comes after a kill does the same.
func (e *Engine) thaw(ctx context.Context, m machine) error {
	frozen := m.group().Frozen()
	if _, err := os.Lstat(m.freezing()); errors.Is(err, fs.ErrNotExist) && !frozen {
		return nil
	}
	if frozen {
		if err := m.group().SetFrozen(false); err != nil {
			return err
		}
		if err := m.group().AwaitFrost(ctx, false); err != nil {
			return err
		}
	}
	if m.running() {
		if err := xl.Do(ctx, "unpause", m.domain()); err != nil && !xl.Absent(err) {
			return err
		}
	}
	return m.frost().Thaw()
}
