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

// Sweep thaws machines that a killed run froze, and ends those that it was starting. It completes
// the shutdown of those that it was stopping, and removes what it left beside the nodes. It returns
// to the host the PCI functions of machines whose QEMU was killed. The agents end commands in
// guests when their callers die.
func (e *Engine) Sweep(ctx context.Context, site string) error {
	left := problem.New(problem.Failed, "virtual machines of a killed run of site %s are still running", site).
		Try("end their processes and run the same command again")
	return vm.Sweep(ctx, e.Nodes, site, left, func(ctx context.Context, ref engine.Ref) error {
		return e.sweep(ctx, e.machine(ref))
	})
}

func (e *Engine) sweep(ctx context.Context, m machine) error {
	if tree.Exists(m.FreezingFile()) || tree.Exists(m.haltedFile()) {
		// first, because frozen processes neither stop nor end
		if err := m.Freezer().Thaw(); err != nil {
			return err
		}
		// If QEMU does not answer, the mark stays, so that the machine is listed as frozen.
		// Starting it then reports why, and it can still be stopped.
		_ = e.resume(ctx, m)
	}
	if tree.Exists(m.handoverFile()) {
		if err := resolve(ctx, e.guests, m); err != nil {
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
		if err := e.powerOff(ctx, m); err != nil {
			return err
		}
		return e.cleanUp(ctx, m)
	case len(m.Group().Processes()) == 0:
		// The machine has stopped, or its QEMU was killed. No other run would return its PCI
		// functions, because the node looks stopped.
		return pci.Local.Release(ctx, m.pciOwner())
	}
	return nil
}
