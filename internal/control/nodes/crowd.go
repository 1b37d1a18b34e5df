// Package nodes works with many nodes at once: it runs commands in them, copies files to and from
// them, and publishes their ports.
package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"orrery/internal/control"
	"orrery/internal/control/way"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/selector"
)

// A Crowd is a set of nodes on which the same work is done, on several at once.
type Crowd struct {
	Nodes    []*site.Node
	Roll     *way.Roll              // the site's nodes, including these
	Runners  map[string]host.Runner // of the nodes that run
	Parallel int
	Timeout  time.Duration // for each node, or 0 for none
}

// NewCrowd returns the nodes that match selectors. Parallel is how many of them to work on at once.
func NewCrowd(ctx context.Context, c *control.Session, s *site.Site, selectors []string, parallel int) (*Crowd, error) {
	chosen, err := selector.Select(s, selectors...)
	if err != nil {
		return nil, err
	}
	roll, err := way.Call(ctx, c, s)
	if err != nil {
		return nil, err
	}
	runners, err := roll.Runners()
	return &Crowd{Nodes: chosen, Roll: roll, Runners: runners, Parallel: parallel}, err
}

// An Ending is the result of work on one node.
type Ending struct {
	Node string
	Err  error
	Took time.Duration
}

// do calls work for each node, and ended for each node that is done. It returns the results in the
// order of the nodes.
func (c *Crowd) do(ctx context.Context, work func(ctx context.Context, i int, in host.Runner) error,
	ended func(i int, e Ending)) []Ending {
	endings := make([]Ending, len(c.Nodes))
	one := func(i int) {
		n, began := c.Nodes[i], time.Now()
		err := c.within(ctx, func(ctx context.Context) error { return work(ctx, i, c.in(n.Name)) })
		endings[i] = Ending{n.Name, err, time.Since(began)}
		ended(i, endings[i])
	}
	if len(c.Nodes) == 1 {
		one(0) // starting a goroutine would take a good part of the time needed to enter a node
		return endings
	}
	places := make(chan struct{}, max(1, c.Parallel))
	var all sync.WaitGroup
	for i := range c.Nodes {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			one(i)
		})
	}
	all.Wait()
	return endings
}

// within runs work with a timeout. If the timeout expires, it returns the cause, because the error
// of work says less.
func (c *Crowd) within(ctx context.Context, work func(context.Context) error) error {
	if c.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("not done within %s", c.Timeout))
		defer stop()
	}
	err := work(ctx)
	var said *problem.Problem
	switch why := context.Cause(ctx); {
	case err == nil || why == nil || errors.As(err, &said):
		return err
	case errors.Is(why, context.Canceled):
		return errors.New("interrupted")
	default:
		return why
	}
}

// Speak calls do for each node and displays what the nodes print.
func (c *Crowd) Speak(ctx context.Context, show Speech,
	do func(ctx context.Context, i int, in host.Runner, to Speaker) error) ([]Ending, error) {
	speakers := make([]Speaker, len(c.Nodes))
	for i := range speakers {
		speakers[i] = show.Of(i)
	}
	endings := c.do(ctx,
		func(ctx context.Context, i int, in host.Runner) error { return do(ctx, i, in, speakers[i]) },
		func(i int, e Ending) { speakers[i].End(e) })
	if err := show.Close(); err != nil || ctx.Err() == nil {
		return endings, err
	}
	return endings, problem.New(problem.Interrupted, "interrupted").
		Try("the lines above say where it ended; run the same command again for the others")
}

// in returns the runner of a node. If there is none, the runner returns an error that says so.
func (c *Crowd) in(name string) host.Runner {
	if in, ok := c.Runners[name]; ok {
		return in
	}
	if c.Roll == nil {
		return absent{why: way.NotRunning(name)}
	}
	return absent{why: c.Roll.Absence(name)}
}

// absent is the runner of a node that does not run, or is frozen.
type absent struct {
	host.Runner
	why error
}

func (a absent) Run(context.Context, host.Command) error { return a.why }

// Failed returns the names of the nodes that failed.
func Failed(endings []Ending) []string {
	var names []string
	for _, e := range endings {
		if e.Err != nil {
			names = append(names, e.Node)
		}
	}
	return names
}

// A Speech displays what many nodes print at once. Whatever a node prints, its lines cannot be
// mistaken for those of another node.
type Speech interface {
	Of(i int) Speaker
	Close() error // after all nodes have ended
}

// A Speaker displays what one node prints, and its result.
type Speaker interface {
	Out() io.Writer
	Errs() io.Writer
	End(Ending)
}
