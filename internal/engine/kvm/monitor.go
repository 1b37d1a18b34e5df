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

// ask does something with the monitor of a machine.
func (m machine) ask(ctx context.Context, do func(*qmp.Client) error) error {
	q, err := m.monitor(ctx)
	if err != nil {
		return err
	}
	defer q.Close() //nolint:errcheck // it has answered
	return do(q)
}

// order does that by a command that has no arguments.
func (m machine) order(ctx context.Context, command string) error {
	return m.ask(ctx, func(q *qmp.Client) error { return q.Do(ctx, command, nil, nil) })
}

// glancing is how long a monitor may take to say why its machine stands still.
const glancing = time.Second

// runState returns what QEMU says of a machine (query-status); "": nothing.
func (m machine) runState(ctx context.Context) (state string) {
	ctx, cancel := context.WithTimeout(ctx, glancing)
	defer cancel()
	_ = m.ask(ctx, func(q *qmp.Client) (err error) { // it may be busy, or have just ended
		state, err = q.Status(ctx)
		return err
	})
	return state
}

// feed lets a machine go on that stands still for want of room: what its guest wrote then, it writes once more.
func (m machine) feed(ctx context.Context) error {
	if m.runState(ctx) != qmp.Starved {
		return nil
	}
	return m.order(ctx, "cont")
}
