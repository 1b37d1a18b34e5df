package kvm

import (
	"context"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/cgroup"
	"orrery/internal/host"
	"orrery/internal/problem"
)

// flush is how long a guest may take to write what it has in memory of its files. What it has not written then stays there: no promise is broken that a container,
// or a power cut, would keep.
const flush = 10 * time.Second

// Flush lets the guest write to its files what was mapped and changed in memory. All else it has written: virtiofs has no cache of what is to be written.
func (e *Engine) Flush(ctx context.Context, ref engine.Ref) {
	m := e.machine(ref)
	if !m.running() || m.group().Frozen() || m.HasDisk() && !m.Visited() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flush)
	defer cancel()
	_ = e.Runner(ref).Run(ctx, host.Command{Args: []string{"sync"}})
}

// Freeze lets a machine stand still.
func (e *Engine) Freeze(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	if !m.running() {
		return engine.NotRunning(ref)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := m.frost().Freeze(ctx); err != nil {
		return problem.New(problem.Failed, "node %s does not stand still", ref.Name).At(m.Path()).Because(err)
	}
	return nil
}

// Thaw lets a machine go on.
func (e *Engine) Thaw(ctx context.Context, ref engine.Ref) error {
	m := e.machine(ref)
	if err := m.thaw(); err != nil {
		return problem.New(problem.Failed, "node %s stays frozen", ref.Name).At(m.Path()).Because(err)
	}
	return m.group().AwaitFrost(ctx, false)
}

func (m machine) frost() cgroup.Frost { return cgroup.Frost{Group: m.group(), Mark: m.freezing()} }

// thaw lets a machine go on that is frozen or halted, whoever did that.
func (m machine) thaw() error {
	if err := m.frost().Thaw(); err != nil {
		return err
	}
	return m.goOn()
}
