package snapshots

import (
	"context"
	"sync"
	"time"

	"orrery/internal/problem"
)

// A Gathering is where hosts wait for one another: all of them go on from there, or none.
type Gathering struct {
	mutex   sync.Mutex
	missing map[string]bool
	done    chan struct{}
	err     error
	last    func() error // is done when all have come, before they go on; nil: nothing
}

// Gather returns one for hosts. Last, if it is set, is done when all have come, before they go on.
func Gather(hosts []string, last func() error) *Gathering {
	g := &Gathering{missing: map[string]bool{}, done: make(chan struct{}), last: last}
	for _, h := range hosts {
		g.missing[h] = true
	}
	return g
}

// Arrive says that a host is there, and waits for the others. Limit is how long it waits at most;
// 0: as long as it takes.
func (g *Gathering) Arrive(ctx context.Context, host string, limit time.Duration) error {
	g.mutex.Lock()
	waits := len(g.missing)
	delete(g.missing, host)
	complete := waits > 0 && len(g.missing) == 0 && g.err == nil
	g.mutex.Unlock()
	if complete {
		var err error
		if g.last != nil {
			err = g.last()
		}
		g.End(err)
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit,
			problem.New(problem.Failed, "the other hosts did not get that far within %s", limit))
		defer cancel()
	}
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
		g.End(context.Cause(ctx))
		return context.Cause(ctx)
	}
}

// End lets all go on, or none if something is wrong. What was said first counts.
func (g *Gathering) End(err error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	select {
	case <-g.done:
	default:
		g.err = err
		close(g.done)
	}
}
