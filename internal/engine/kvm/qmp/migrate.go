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

// What QEMU says of a machine (RunState of its QMP reference), in so far as somebody decides by it.
const (
	Running  = "running"
	Paused   = "paused"
	Starved  = "io-error"       // the host had no room
	Panicked = "guest-panicked" // its kernel has told pvpanic
	Awaits   = "inmigrate"      // the state of another machine
	Sends    = "finish-migrate" // the last of its state
	Sent     = "postmigrate"    // its state: whoever has got that goes on
)

// Status tells what the machine does.
func (c *Client) Status(ctx context.Context) (string, error) {
	var reply struct{ Status string }
	err := c.Do(ctx, "query-status", nil, &reply)
	return sanitize.Line(reply.Status), err
}

// A Migration is how a machine's state has got elsewhere, as QEMU tells it.
type Migration struct {
	Status   string `json:"status"`
	Downtime int64  `json:"downtime"`   // for how many milliseconds no machine ran
	Total    int64  `json:"total-time"` // how many it took altogether
	RAM      struct {
		Transferred int64 `json:"transferred"` // bytes
	} `json:"ram"`
	Why string `json:"error-desc"`
}

// stated is what QEMU calls the connection that a machine's state takes. A new one of that name
// takes the place of one that was not used up.
const stated = "state"

// Send sends the state of the machine to whoever reads at the other end of a file, while it goes on
// until the last of it. Then it stands still for good, unless it is told to go on. If it cannot be
// sent, or not while ctx allows, the machine goes on.
func (c *Client) Send(ctx context.Context, to *os.File) (*Migration, error) {
	if err := c.announced(ctx); err != nil {
		return nil, err
	}
	if err := c.Hand(ctx, stated, to); err != nil {
		return nil, err
	}
	sent, err := c.migrate(ctx)
	if ctx.Err() != nil { // it may have begun, or ended, without our having heard of it
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), settling)
		defer cancel()
		return c.Recall(back)
	}
	return sent, err
}

// settling is how long QEMU may take to give up, or to complete what it no longer can.
const settling = 30 * time.Second

// Recall lets the machine go on if not all of its state has been sent yet, and tells what became of it.
func (c *Client) Recall(ctx context.Context) (*Migration, error) {
	if err := c.Do(ctx, "migrate_cancel", nil, nil); err != nil {
		return nil, err
	}
	sent, err := c.settled(ctx)
	if err != nil {
		return nil, err
	}
	if status, err := c.Status(ctx); err != nil || status != Sent {
		// what is told to be complete may be what it has once received itself
		return nil, errors.Join(errGivenUp, err)
	}
	return sent, nil
}

var errGivenUp = errors.New("it was given up")

// Receive lets a machine that was started for it take over the state that comes out of a file, and
// go on with it.
func (c *Client) Receive(ctx context.Context, from *os.File) error {
	if err := c.announced(ctx); err != nil {
		return err
	}
	if err := c.Hand(ctx, stated, from); err != nil {
		return err
	}
	return c.Do(ctx, "migrate-incoming", map[string]any{"uri": "fd:" + stated}, nil)
}

// announced lets QEMU tell each state of a migration.
func (c *Client) announced(ctx context.Context) error {
	return c.Do(ctx, "migrate-set-capabilities",
		map[string]any{"capabilities": []map[string]any{{"capability": "events", "state": true}}}, nil)
}

// migrate sends the state, and waits for the end of it.
func (c *Client) migrate(ctx context.Context) (*Migration, error) {
	if err := c.Do(ctx, "migrate", map[string]any{"uri": "fd:" + stated}, nil); err != nil {
		return nil, err
	}
	return c.outcome(ctx)
}

// outcome waits for the end of a migration.
func (c *Client) outcome(ctx context.Context) (*Migration, error) {
	for {
		e, err := c.Await(ctx, "MIGRATION")
		if err != nil {
			return nil, err
		}
		var data struct{ Status string }
		if err := jsonlimit.Unmarshal(e.Data, &data); err != nil {
			return nil, err
		}
		if ends(data.Status) {
			return c.settled(ctx)
		}
	}
}

// settled waits until QEMU says how a migration has ended, which it does a moment after the event.
func (c *Client) settled(ctx context.Context) (*Migration, error) {
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
			return nil, errGivenUp
		}
		if err := host.Pause(ctx, 10*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func ends(status string) bool {
	return status == "completed" || status == "failed" || status == "cancelled"
}
