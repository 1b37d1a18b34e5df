package vm

import (
	"context"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
)

// hearing is how long the agent of a guest that is to shut down may take to answer: one that is
// booting has none yet.
const hearing = 30 * time.Second

// PowerOff asks the agent of a guest to shut it down, for as long as the machine runs: off waits
// until it does not. That it has been heard is all that is told. A guest whose agent does not
// answer may shut down all the same.
func (a *Agents) PowerOff(ctx context.Context, ref engine.Ref, off func(context.Context) error) error {
	asking, cancel := context.WithTimeout(ctx, hearing)
	defer cancel()
	go func() {
		if off(asking) == nil {
			cancel()
		}
	}()
	c, err := a.Of(asking, ref)
	if err != nil {
		return err
	}
	return c.PowerOff(asking)
}

// flush is how long a guest may take to write what it has in memory of its files. What it has not
// written then stays there: no promise is broken that a container, or a power cut, would keep.
const flush = 10 * time.Second

// Flush lets a guest write to its files what it has in memory of them.
func Flush(ctx context.Context, guest host.Runner) {
	ctx, cancel := context.WithTimeout(ctx, flush)
	defer cancel()
	_ = guest.Run(ctx, host.Command{Args: []string{"sync"}})
}
