package drift

import (
	"context"
	"fmt"
	"time"
)

// A Round is one round of looks into nodes: all are asked at once, and none of them decides how
// long that takes.
type Round []look

type look struct {
	node   int // by its place in the caller's list
	within time.Duration
	do     func(context.Context) error
}

const (
	looksAtOnce = 64 // each is a few processes
	slack       = 2 * time.Second
)

// Add adds a look at a node, which is to take no longer than it may.
func (r *Round) Add(node int, within time.Duration, do func(context.Context) error) {
	*r = append(*r, look{node, within + slack, do})
}

// Run returns what is wrong, by node. A look that does not end in its time is not waited for: not
// everything in a node lets go when it is told to.
func (r Round) Run(ctx context.Context) map[int]error {
	type answer struct {
		node int
		err  error
	}
	answers := make(chan answer, len(r))
	places := make(chan struct{}, looksAtOnce)
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
				select { // who is told to end most often does, and says more
				case err = <-ended:
				case <-time.After(slack):
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
