package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"orrery/internal/apply/remote"
	"orrery/internal/control"
	"orrery/internal/control/way"
	"orrery/internal/host"
)

// A pursuit follows what a node prints from one release of it to the next that goes live.
type pursuit struct {
	live  func(ctx context.Context) (instance, error) // which is live now
	way   func() (host.Runner, error)                 // into that
	moved func(release int)                           // is told of the release that has gone live
	every time.Duration                               // it is looked
	most  time.Duration                               // that nothing may be live while they change places
}

// An instance is a node of one release.
type instance struct{ id, release int }

func pursuitOf(c *control.Session, roll *way.Roll, name string, moved func(release int)) *pursuit {
	p := &pursuit{moved: moved, every: time.Second, most: 10 * time.Second}
	if c.Release != control.Live { // then that and no other is meant
		return p
	}
	p.live = func(ctx context.Context) (instance, error) {
		n, err := roll.Live(ctx, name)
		if err != nil {
			return instance{}, err
		}
		return instance{n.ID, n.Release}, nil
	}
	p.way = func() (host.Runner, error) { return roll.Runner(name) }
	return p
}

// follow runs a command that follows a journal, again in each release that goes live, from where
// the one before was left. It has no end but that of ctx, or that the node is gone.
func (p *pursuit) follow(ctx context.Context, in host.Runner, c host.Command) error {
	if p.live == nil {
		return unlessOver(ctx, in.Run(ctx, c))
	}
	last, err := p.live(ctx)
	for again := c; err == nil; {
		seen, next := p.until(ctx, last, func(ctx context.Context) error { err = in.Run(ctx, again); return err })
		if next == last || ctx.Err() != nil {
			break
		}
		p.moved(next.release)
		last = next
		if in, err = p.way(); err == nil {
			again.Args = append(slices.Clone(c.Args), "--lines=all", fmt.Sprintf("--since=@%d", seen.Unix()))
		}
	}
	return unlessOver(ctx, err)
}

// until does something until another instance is live, and returns that and when the former was last
// seen to be; or the same if it ends before, or the host is lost.
func (p *pursuit) until(ctx context.Context, last instance, do func(context.Context) error) (seen time.Time,
	next instance) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended, lost := make(chan struct{}), false
	go func() {
		defer close(ended)
		lost = errors.Is(do(ctx), remote.ErrLost)
	}()
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	over := ended
	var late <-chan time.Time
	for seen = time.Now(); ; {
		select {
		case <-over: // it may be that it ended because another takes its place
			if lost {
				return seen, last
			}
			over, late = nil, time.After(p.most)
		case <-late:
			return seen, last
		case <-tick.C:
		}
		now, err := p.live(ctx)
		switch {
		case err == nil && now != last:
			stop()
			<-ended
			return seen, now
		case err == nil && over == nil || ctx.Err() != nil: // it is there, and nothing is to be read of it
			<-ended
			return seen, last
		case err == nil:
			seen = time.Now()
		}
	}
}

// unlessOver returns an error of something that ends only with ctx, or nil if ctx has ended.
func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
