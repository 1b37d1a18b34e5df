package qmp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"orrery/internal/host"
	"orrery/internal/strict/jsonlimit"
	"orrery/internal/text/sanitize"
)

// The states of a machine (RunState of QEMU's QMP reference) that callers distinguish.
const (
	Running   = "running"
	Paused    = "paused"
	IOError   = "io-error"       // stopped because the host had no room
	Panicked  = "guest-panicked" // its kernel has notified pvpanic
	Receiving = "inmigrate"      // waits for the state of another machine
	Sending   = "finish-migrate" // is sending the last of its state
	Sent      = "postmigrate"    // has sent its state, and the receiver continues
)

// Status returns the state of the machine.
func (c *Client) Status(ctx context.Context) (string, error) {
	var reply struct{ Status string }
	err := c.Do(ctx, "query-status", nil, &reply)
	return sanitize.Line(reply.Status), err
}

// A Migration is QEMU's report on sending a machine's state.
type Migration struct {
	Status   string `json:"status"`
	Downtime int64  `json:"downtime"`   // in milliseconds, how long no machine ran
	Total    int64  `json:"total-time"` // in milliseconds
	RAM      struct {
		Transferred int64 `json:"transferred"` // bytes
	} `json:"ram"`
	Why string `json:"error-desc"`
}

// stateFD is QEMU's name for the file through which a state is sent. A new file of that name
// replaces one that was not used up.
const stateFD = "state"

// Send sends the state of the machine to the file. The machine runs until the last part is sent.
// Then it stays stopped, unless it is told to continue. If the state cannot be sent before ctx
// ends, the machine continues.
func (c *Client) Send(ctx context.Context, to *os.File) (*Migration, error) {
	if err := c.enableEvents(ctx); err != nil {
		return nil, err
	}
	if err := c.PassFile(ctx, stateFD, to); err != nil {
		return nil, err
	}
	sent, err := c.migrate(ctx)
	if ctx.Err() != nil { // it may have begun or ended without an answer
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
		defer cancel()
		return c.CancelMigration(back)
	}
	return sent, err
}

// cancelTimeout limits how long QEMU may take to cancel a migration, or to complete one that it can no
// longer cancel.
const cancelTimeout = 30 * time.Second

// CancelMigration cancels a migration, so that the machine continues. If all of the state has been sent
// already, it returns the migration.
func (c *Client) CancelMigration(ctx context.Context) (*Migration, error) {
	if err := c.Do(ctx, "migrate_cancel", nil, nil); err != nil {
		return nil, err
	}
	sent, err := c.awaitResult(ctx)
	if err != nil {
		return nil, err
	}
	if status, err := c.Status(ctx); err != nil || status != Sent {
		// A completed migration may be one in which this machine received its state.
		return nil, errors.Join(errCancelled, err)
	}
	return sent, nil
}

var errCancelled = errors.New("it was cancelled")

// Receive makes a machine that was started for it load the state from a file, and continue with it.
func (c *Client) Receive(ctx context.Context, from *os.File) error {
	if err := c.enableEvents(ctx); err != nil {
		return err
	}
	if err := c.PassFile(ctx, stateFD, from); err != nil {
		return err
	}
	return c.Do(ctx, "migrate-incoming", map[string]any{"uri": "fd:" + stateFD}, nil)
}

// enableEvents makes QEMU report each state of a migration as an event.
func (c *Client) enableEvents(ctx context.Context) error {
	return c.Do(ctx, "migrate-set-capabilities",
		map[string]any{"capabilities": []map[string]any{{"capability": "events", "state": true}}}, nil)
}

// migrate sends the state, and waits until the migration ends.
func (c *Client) migrate(ctx context.Context) (*Migration, error) {
	if err := c.Do(ctx, "migrate", map[string]any{"uri": "fd:" + stateFD}, nil); err != nil {
		return nil, err
	}
	return c.awaitEnd(ctx)
}

// awaitEnd waits for the end of a migration.
func (c *Client) awaitEnd(ctx context.Context) (*Migration, error) {
	for {
		e, err := c.Await(ctx, "MIGRATION")
		if err != nil {
			return nil, err
		}
		var data struct{ Status string }
		if err := jsonlimit.Unmarshal(e.Data, &data); err != nil {
			return nil, err
		}
		if hasEnded(data.Status) {
			return c.awaitResult(ctx)
		}
	}
}

// awaitResult waits until QEMU reports how a migration has ended, which it does a moment after the
// event.
func (c *Client) awaitResult(ctx context.Context) (*Migration, error) {
	for {
		m := new(Migration)
		if err := c.Do(ctx, "query-migrate", nil, m); err != nil {
			return nil, err
		}
		switch m.Status {
		case "completed":
			return m, nil
		case "failed":
			return nil, fmt.Errorf("QEMU cannot send the machine's state: %s", sanitize.Line(m.Why))
		case "cancelled", "":
			return nil, errCancelled
		}
		if err := host.Sleep(ctx, 10*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func hasEnded(status string) bool {
	return status == "completed" || status == "failed" || status == "cancelled"
}
