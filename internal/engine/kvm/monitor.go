package kvm

import (
	"context"
	"path/filepath"
	"time"

	"orrery/internal/engine/kvm/qmp"
)

// monitor is the socket of QEMU's monitor, and consoleSocket that of the guest's serial port.
const (
	monitor       = "monitor.sock"
	consoleSocket = "console.sock"
)

// monitor connects to the monitor of a machine.
func (m machine) monitor(ctx context.Context) (*qmp.Client, error) {
	return qmp.Dial(ctx, filepath.Join(m.Run, monitor))
}

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

// feed lets a machine go on that stands still because the host had no room: what its guest wrote then, it writes once more.
func (m machine) feed(ctx context.Context) error {
	if m.runState(ctx) != qmp.Starved {
		return nil
	}
	q, err := m.monitor(ctx)
	if err != nil {
		return err
	}
	defer q.Close() //nolint:errcheck // it has answered
	return q.Do(ctx, "cont", nil, nil)
}
