package kvm

import (
	"context"
	"os"

	"orrery/internal/engine"
	"orrery/internal/engine/vm"
	"orrery/internal/host/pci"
	"orrery/internal/problem"
	"orrery/internal/tree"
)

// Sweep lets machines go on that a killed run froze, ends those that it was starting, waits for
// those that it was stopping, and removes what it left beside the nodes. The host gets back what
// machines had of it whose QEMU was killed. Commands in guests end by themselves with whoever gave
// them: the agent sees to it.
func (e *Engine) Sweep(ctx context.Context, site string) error {
	left := problem.New(problem.Failed, "virtual machines of a run of site %s that was killed are still at work", site).
		Try("end their processes and run the same command again")
	return vm.Sweep(ctx, e.Nodes, site, left, func(ctx context.Context, ref engine.Ref) error {
		return e.sweep(ctx, e.machine(ref))
	})
}

func (e *Engine) sweep(ctx context.Context, m machine) error {
	if tree.Exists(m.Freezing()) || tree.Exists(m.halted()) { // first: what is frozen neither stops nor ends
		if err := m.Frost().Thaw(); err != nil {
			return err
		}
		// one whose QEMU does not answer stays marked, so that it is seen to stand still: whoever starts
		// it learns why, and whoever ends it can
		_ = e.goOn(ctx, m)
	}
	if tree.Exists(m.moving()) {
		if err := resolve(ctx, e.guests, m); err != nil {
			return err
		}
	}
	switch {
	case tree.Exists(m.Starting()):
		if err := e.end(ctx, m); err != nil {
			return err
		}
		return os.Remove(m.Starting())
	case tree.Exists(m.Stopping()):
		if err := e.powerOff(ctx, m); err != nil {
			return err
		}
		return e.tidy(ctx, m)
	case len(m.Group().Processes()) == 0:
		// it has stopped, or its QEMU was killed: nobody would give back what that had, as to all others
		// the node is stopped
		return pci.Here.Return(ctx, m.holder())
	}
	return nil
}
