package kvm

import (
	"context"
	"time"

	"orrery/internal/engine/kvm/qmp"
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
