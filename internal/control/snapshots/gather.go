package snapshots

import (
	"context"
	"sync"
	"time"

	"orrery/internal/problem"
)

// A Barrier is a barrier for hosts. They wait for each other, and then all continue or none.
type Barrier struct {
	mutex   sync.Mutex
	missing map[string]bool
	done    chan struct{}
	err     error
	last    func() error // called when all have arrived, before they continue, or nil
}

// NewBarrier returns a Barrier for hosts. If last is not nil, it is called when all have arrived,
// before they continue.
func NewBarrier(hosts []string, last func() error) *Barrier {
	g := &Barrier{missing: map[string]bool{}, done: make(chan struct{}), last: last}
	for _, h := range hosts {
		g.missing[h] = true
	}
	return g
}

// Wait reports the arrival of a host, and waits for the others. Limit is the longest wait, or 0
// for no limit.
func (g *Barrier) Wait(ctx context.Context, host string, limit time.Duration) error {
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
			problem.New(problem.Failed, "the other hosts did not reach this point within %s", limit))
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

// End makes all hosts continue, or makes all of them fail if err is not nil. Only the first call
// counts.
func (g *Barrier) End(err error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	select {
	case <-g.done:
	default:
		g.err = err
		close(g.done)
	}
}
