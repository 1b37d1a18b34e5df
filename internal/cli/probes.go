package cli

import (
	"context"
	"fmt"
	"time"
)

// probes are one round of health checks: all nodes are asked at once, and none of them decides how long that takes.
type probes []probe

type probe struct {
	row    int // of which node
	within time.Duration
	do     func(context.Context) error
}

const (
	probesAtOnce = 64 // each is a few processes
	probeSlack   = 2 * time.Second
)

func (p *probes) add(row int, within time.Duration, do func(context.Context) error) {
	*p = append(*p, probe{row, within + probeSlack, do})
}

// run gives what is wrong, by row. A probe that does not end in its time is not waited for: not everything in a node lets go when it is told to.
func (p probes) run(ctx context.Context) map[int]error {
	type answer struct {
		row int
		err error
	}
	answers := make(chan answer, len(p))
	places := make(chan struct{}, probesAtOnce)
	for _, one := range p {
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
				case <-time.After(probeSlack):
					err = context.Cause(within)
				}
			}
			<-places
			answers <- answer{one.row, err}
		}()
	}
	wrong := map[int]error{}
	for range p {
		if a := <-answers; a.err != nil {
			wrong[a.row] = a.err
		}
	}
	return wrong
}
