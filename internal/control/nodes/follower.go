package nodes

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

// A follower follows the output of a node from one live release to the next.
type follower struct {
	live  func(ctx context.Context) (instance, error) // returns the instance that is live now
	way   func() (host.Runner, error)                 // returns the way into it
	moved func(release int)                           // called with the release that has become live
	every time.Duration                               // interval of checks
	most  time.Duration                               // how long no instance may be live during a switch
}

// An instance is the node of one release.
type instance struct{ id, release int }

func newFollower(c *control.Session, roll *way.Directory, name string, moved func(release int)) *follower {
	p := &follower{moved: moved, every: time.Second, most: 10 * time.Second}
	if c.Release != control.Live { // then only this release is selected
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

// follow runs a command that follows a journal. It runs the command again in each release that
// becomes live, from where the former journal was left. It ends only when ctx ends or the node is
// gone.
func (p *follower) follow(ctx context.Context, in host.Runner, c host.Command) error {
	if p.live == nil {
		return ignoreCanceled(ctx, in.Run(ctx, c))
	}
	last, err := p.live(ctx)
	for again := c; err == nil; {
		seen, next := p.runUntilSwitch(ctx, last, func(ctx context.Context) error { err = in.Run(ctx, again); return err })
		if next == last || ctx.Err() != nil {
			break
		}
		p.moved(next.release)
		last = next
		if in, err = p.way(); err == nil {
			again.Args = append(slices.Clone(c.Args), "--lines=all", fmt.Sprintf("--since=@%d", seen.Unix()))
		}
	}
	return ignoreCanceled(ctx, err)
}

// runUntilSwitch runs do until another instance is live. It returns that instance, and when the former one
// was last seen live. If do ends before, or the host is lost, it returns the same instance.
func (p *follower) runUntilSwitch(ctx context.Context, last instance, do func(context.Context) error) (seen time.Time,
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
		case <-over: // perhaps it ended because another instance replaces it
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
		case err == nil && over == nil || ctx.Err() != nil: // the node is there, but nothing can be read from it
			<-ended
			return seen, last
		case err == nil:
			seen = time.Now()
		}
	}
}

// ignoreCanceled returns the error of something that ends only with ctx, or nil if ctx has ended.
func ignoreCanceled(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
