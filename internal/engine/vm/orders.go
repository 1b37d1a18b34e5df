package vm

import (
	"context"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
)

// powerOffTimeout limits how long the agent of a guest may take to accept a shutdown. A booting guest has
// no agent yet.
const powerOffTimeout = 30 * time.Second

// PowerOff asks the agent of a guest to shut it down. It gives up when off returns nil, which means
// that the machine no longer runs. It returns when the agent has accepted the request. A guest
// whose agent does not answer may shut down all the same.
func (a *Agents) PowerOff(ctx context.Context, ref engine.Ref, off func(context.Context) error) error {
	asking, cancel := context.WithTimeout(ctx, powerOffTimeout)
	defer cancel()
	go func() {
		if off(asking) == nil {
			cancel()
		}
	}()
	c, err := a.Connect(asking, ref)
	if err != nil {
		return err
	}
	return c.PowerOff(asking)
}

// flushTimeout limits how long a guest may take to write cached file changes. What it has not written then
// may be lost, as in a container or after a power cut.
const flushTimeout = 10 * time.Second

// Flush makes a guest write cached changes to its files.
func Flush(ctx context.Context, guest host.Runner) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	_ = guest.Run(ctx, host.Command{Args: []string{"sync"}})
}
