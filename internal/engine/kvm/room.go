package kvm

import (
	"context"
	"errors"
	"time"

	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// glancing is how long a monitor may take to say why its machine stands still.
const glancing = time.Second

// runState returns what QEMU says of a machine (query-status); "": nothing.
func (m machine) runState(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, glancing)
	defer cancel()
	q, err := m.monitor(ctx)
	if err != nil {
		return "" // it is busy, or has just ended
	}
	defer q.Close() //nolint:errcheck // it has answered
	state, err := q.Status(ctx)
	if err != nil {
		return ""
	}
	return state
}

// starved reports whether a machine stands still because the host had no room for what its guest wrote.
func (m machine) starved(ctx context.Context) bool { return m.runState(ctx) == qmp.Starved }

// writes reports whether a machine writes to disks of which the host may have no room for more.
func writes(n *spec.Node) bool { return len(n.VM.Drives()) > 0 || n.Imported() }

// haltInterval is how often QEMU is asked whether a machine that boots stands still.
const haltInterval = time.Second

// errStarved is why nobody waits any longer for a machine that boots.
var errStarved = problem.New(problem.Failed, "its host has no room for what it writes to its disks").
	Try("make room there, then run the same command again")

// errPanicked is the same.
var errPanicked = problem.New(problem.Failed, "its kernel has panicked").
	Try("orrery console NODE --log shows all that was recorded of its console")

// errRootless is the same.
var errRootless = problem.New(problem.Failed, "virtiofsd, which shows it its root, has ended").
	Try("run the same command again; the host's kernel tells whether it was short of memory (dmesg)")

// unlessHalted waits for the guest of a machine that boots, and ends the wait when the machine stands still for want of room
// because its kernel has panicked, or it has no root any more.
func (m machine) unlessHalted(ctx context.Context, wait func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for host.Pause(ctx, haltInterval) == nil {
			switch m.runState(ctx) {
			case qmp.Starved:
				cancel(errStarved)
			case qmp.Panicked:
				cancel(errPanicked)
			}
			if m.rootless() {
				cancel(errRootless)
			}
		}
	}()
	err := wait(ctx)
	for _, cause := range []error{errStarved, errPanicked, errRootless} {
		if errors.Is(context.Cause(ctx), cause) {
			return cause
		}
	}
	return err
}

// feed lets such a machine go on: what its guest wrote then, it writes once more.
func (m machine) feed(ctx context.Context) error {
	if !m.starved(ctx) {
		return nil
	}
	q, err := m.monitor(ctx)
	if err != nil {
		return err
	}
	defer q.Close() //nolint:errcheck // it has answered
	return q.Do(ctx, "cont", nil, nil)
}
