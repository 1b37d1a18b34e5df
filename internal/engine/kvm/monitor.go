package kvm

import (
	"context"
	"path/filepath"
	"time"

	"orrery/internal/engine/kvm/qmp"
)

// The names of the sockets of QEMU's monitor and of the guest's serial port.
const (
	monitorSocket = "monitor.sock"
	consoleSocket = "console.sock"
)

// monitor connects to the monitor of a machine.
func (m machine) monitor(ctx context.Context) (*qmp.Client, error) {
	return qmp.Dial(ctx, filepath.Join(m.Run, monitorSocket))
}

// withMonitor calls do with a connection to the monitor of a machine.
func (m machine) withMonitor(ctx context.Context, do func(*qmp.Client) error) error {
	q, err := m.monitor(ctx)
	if err != nil {
		return err
	}
	defer q.Close() //nolint:errcheck // it has answered
	return do(q)
}

// command sends the monitor a command without arguments.
func (m machine) command(ctx context.Context, command string) error {
	return m.withMonitor(ctx, func(q *qmp.Client) error { return q.Do(ctx, command, nil, nil) })
}

// runStateTimeout limits how long runState waits for the monitor.
const runStateTimeout = time.Second

// runState returns the status of a machine from QEMU (query-status), or "" if QEMU does not answer.
func (m machine) runState(ctx context.Context) (state string) {
	ctx, cancel := context.WithTimeout(ctx, runStateTimeout)
	defer cancel()
	_ = m.withMonitor(ctx, func(q *qmp.Client) (err error) { // QEMU may be busy, or have just ended
		state, err = q.Status(ctx)
		return err
	})
	return state
}

// resumeStarved lets a machine continue that stopped because its host had no room. QEMU then repeats the
// guest's failed writes.
func (m machine) resumeStarved(ctx context.Context) error {
	if m.runState(ctx) != qmp.IOError {
		return nil
	}
	return m.command(ctx, "cont")
}
