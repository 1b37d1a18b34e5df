package logs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/site"
)

// A pursuit follows what a node prints from one release of it to the next that goes live.
type pursuit struct {
	live  func() (instance, error)                       // which is live now
	way   func(ctx context.Context) (host.Runner, error) // into that
	moved func(release int)                              // is told of the release that has gone live
	every time.Duration                                  // it is looked
	most  time.Duration                                  // that nothing may be live while they change places
}

// An instance is a node of one release.
type instance struct{ id, release int }

func pursuitOf(c *control.Session, s *site.Site, name string, moved func(release int)) *pursuit {
	p := &pursuit{moved: moved, every: time.Second, most: 10 * time.Second}
	if c.Release != control.Live { // then that and no other is meant
		return p
	}
	p.live = func() (instance, error) {
		r, err := c.LiveNode(s, name)
		if err != nil {
			return instance{}, err
		}
		return instance{r.ID, r.Release}, nil
	}
	p.way = func(ctx context.Context) (host.Runner, error) { return c.Running(ctx, s, name) }
	return p
}

// follow runs a command that follows a journal, again in each release that goes live, from where the one before was left. It has no end but that of ctx, or
// that the node is gone.
func (p *pursuit) follow(ctx context.Context, in host.Runner, c host.Command) error {
	if p.live == nil {
		return unlessOver(ctx, in.Run(ctx, c))
	}
	was, err := p.live()
	for again := c; err == nil; {
		seen, next := p.until(ctx, was, func(ctx context.Context) { err = in.Run(ctx, again) })
		if next == was || ctx.Err() != nil {
			break
		}
		p.moved(next.release)
		was = next
		if in, err = p.way(ctx); err == nil {
			again.Args = append(slices.Clone(c.Args), "--lines=all", fmt.Sprintf("--since=@%d", seen.Unix()))
		}
	}
	return unlessOver(ctx, err)
}

// until does something until another instance is live, and gives that and when the former was last seen to be; or the same if it ends before.
func (p *pursuit) until(ctx context.Context, was instance, do func(context.Context)) (seen time.Time, next instance) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		do(ctx)
	}()
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	over := ended
	var late <-chan time.Time
	for seen = time.Now(); ; {
		select {
		case <-over: // it may be that it ended because another takes its place
			over, late = nil, time.After(p.most)
		case <-late:
			return seen, was
		case <-tick.C:
		}
		now, err := p.live()
		switch {
		case err == nil && now != was:
			stop()
			<-ended
			return seen, now
		case err == nil && over == nil || ctx.Err() != nil: // it is there, and nothing is to be read of it
			<-ended
			return seen, was
		case err == nil:
			seen = time.Now()
		}
	}
}

// unlessOver gives what went wrong with something that has no end but that of ctx.
func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
