package snapshots

import (
	"context"
	"sync"
	"time"

	"orrery/internal/problem"
)

// A gathering is where hosts wait for one another: all of them go on from there, or none.
type gathering struct {
	mutex   sync.Mutex
	missing map[string]bool
	done    chan struct{}
	err     error
	last    func() error // is done when all have come, before they go on; nil: nothing
}

func gather(hosts []string, last func() error) *gathering {
	g := &gathering{missing: map[string]bool{}, done: make(chan struct{}), last: last}
	for _, h := range hosts {
		g.missing[h] = true
	}
	return g
}

// arrive says that a host is there, and waits for the others. Limit is how long it waits at most; 0: as long as it takes.
func (g *gathering) arrive(ctx context.Context, host string, limit time.Duration) error {
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
		g.end(err)
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, problem.New(problem.Failed, "the other hosts did not get that far within %s", limit))
		defer cancel()
	}
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
		g.end(context.Cause(ctx))
		return context.Cause(ctx)
	}
}

// end lets all go on, or none if something is wrong. What was said first counts.
func (g *gathering) end(err error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	select {
	case <-g.done:
	default:
		g.err = err
		close(g.done)
	}
}
