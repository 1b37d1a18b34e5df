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

// glancing is how long a monitor may take to say whether its machine stands still for want of room.
const glancing = time.Second

// starved reports whether a machine stands still because the host had no room for what its guest wrote (query-status of QEMU).
func (m machine) starved(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, glancing)
	defer cancel()
	q, err := m.monitor(ctx)
	if err != nil {
		return false // it is busy, or has just ended
	}
	defer q.Close() //nolint:errcheck // it has answered
	is, err := q.Status(ctx)
	return err == nil && is == qmp.Starved
}

// writes reports whether a machine writes to disks of which the host may have no room for more.
func writes(n *spec.Node) bool { return len(n.VM.Drives()) > 0 || n.Imported() }

// starvedInterval is how often QEMU is asked whether a machine that boots stands still.
const starvedInterval = time.Second

// errStarved is why nobody waits any longer for a machine that boots.
var errStarved = problem.New(problem.Failed, "its host has no room for what it writes to its disks").
	Try("make room there, then run the same command again")

// unlessStarved waits for the guest of a machine that boots, and ends the wait when the machine stands still for want of room.
func (m machine) unlessStarved(ctx context.Context, n *spec.Node, wait func(context.Context) error) error {
	if !writes(n) {
		return wait(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for host.Pause(ctx, starvedInterval) == nil {
			if m.starved(ctx) {
				cancel(errStarved)
			}
		}
	}()
	err := wait(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, errStarved) {
		return cause
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
