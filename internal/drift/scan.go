package drift

import (
	"context"
	"fmt"
	"time"
)

// A Scan examines nodes concurrently. No single node can delay it beyond a time limit.
type Scan []probe

type probe struct {
	node   int // index in the caller's list
	within time.Duration
	do     func(context.Context) error
}

const (
	maxConcurrentProbes = 64 // each starts a few processes
	probeGrace          = 2 * time.Second
)

// Add adds a look at a node, with its time limit.
func (r *Scan) Add(node int, within time.Duration, do func(context.Context) error) {
	*r = append(*r, probe{node, within + probeGrace, do})
}

// Run runs all looks and returns the errors by node. It does not wait for a look that exceeds its
// limit, because a look may be blocked by the node and ignore its context.
func (r Scan) Run(ctx context.Context) map[int]error {
	type answer struct {
		node int
		err  error
	}
	answers := make(chan answer, len(r))
	places := make(chan struct{}, maxConcurrentProbes)
	for _, one := range r {
		go func() {
			places <- struct{}{}
			ended := make(chan error, 1)
			within, cancel := context.WithTimeoutCause(ctx, one.within, fmt.Errorf("no answer within %s", one.within))
			defer cancel()
			go func() { ended <- one.do(within) }()
			var err error
			select {
			case err = <-ended:
			case <-within.Done():
				select { // a look that is cancelled usually ends soon, and its error is more precise
				case err = <-ended:
				case <-time.After(probeGrace):
					err = context.Cause(within)
				}
			}
			<-places
			answers <- answer{one.node, err}
		}()
	}
	wrong := map[int]error{}
	for range r {
		if a := <-answers; a.err != nil {
			wrong[a.node] = a.err
		}
	}
	return wrong
}
