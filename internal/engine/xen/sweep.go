package xen

import (
	"context"
	"os"

	"orrery/internal/engine"
	"orrery/internal/engine/vm"
	"orrery/internal/problem"
	"orrery/internal/tree"
)

// Sweep thaws domains that a killed run froze, and ends those that it was starting. It completes
// the shutdown of those that it was stopping, and removes what it left beside the nodes. Commands
// in guests need no sweep, because the agent ends them when their caller dies.
func (e *Engine) Sweep(ctx context.Context, site string) error {
	left := problem.New(problem.Failed, "Xen guests of a killed run of site %s are still running", site).
		Try("end them with xl destroy and run the same command again")
	return vm.Sweep(ctx, e.Nodes, site, left, func(ctx context.Context, ref engine.Ref) error {
		return e.sweep(ctx, e.machine(ref))
	})
}

func (e *Engine) sweep(ctx context.Context, m machine) error {
	if tree.Exists(m.savingFile()) {
		if err := e.endSaving(ctx, m); err != nil {
			return err
		}
	}
	if tree.Exists(m.FreezingFile()) { // first, because frozen processes neither stop nor end
		if err := m.thaw(ctx); err != nil {
			return err
		}
	}
	switch {
	case tree.Exists(m.StartingFile()):
		if err := e.kill(ctx, m); err != nil {
			return err
		}
		return os.Remove(m.StartingFile())
	case tree.Exists(m.StoppingFile()):
		return e.powerOff(ctx, m)
	}
	return nil
}
