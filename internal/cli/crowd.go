package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// A crowd is nodes on which the same is done, so many at once.
type crowd struct {
	nodes    []*site.Node
	runners  map[string]host.Runner // of those that run
	parallel int
	timeout  time.Duration // for each; 0: none
}

// An ending is how something ended on one node.
type ending struct {
	node string
	err  error
	took time.Duration
}

// do does something on each node, tells of each when it has ended, and gives how, in the order of the nodes.
func (c *crowd) do(ctx context.Context, work func(ctx context.Context, i int, in host.Runner) error, ended func(i int, e ending)) []ending {
	endings := make([]ending, len(c.nodes))
	places := make(chan struct{}, max(1, c.parallel))
	var all sync.WaitGroup
	for i, n := range c.nodes {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			began := time.Now()
			err := c.within(ctx, func(ctx context.Context) error { return work(ctx, i, c.in(n.Name)) })
			endings[i] = ending{n.Name, err, time.Since(began)}
			ended(i, endings[i])
		})
	}
	all.Wait()
	return endings
}

// within gives some work its time. What meets the end of its time has words of its own for that, which say less.
func (c *crowd) within(ctx context.Context, work func(context.Context) error) error {
	if c.timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("not done within %s", c.timeout))
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

// speak does something on each node that prints, and shows that.
func (c *crowd) speak(ctx context.Context, show speech, do func(ctx context.Context, i int, in host.Runner, to speaker) error) ([]ending, error) {
	speakers := make([]speaker, len(c.nodes))
	for i := range speakers {
		speakers[i] = show.of(i)
	}
	endings := c.do(ctx,
		func(ctx context.Context, i int, in host.Runner) error { return do(ctx, i, in, speakers[i]) },
		func(i int, e ending) { speakers[i].end(e) })
	if err := show.close(); err != nil || ctx.Err() == nil {
		return endings, err
	}
	return endings, problem.New(problem.Interrupted, "interrupted").Try("the lines above say where it has ended; run the same command again for the others")
}

// in gives the way into a node, which says so if there is none.
func (c *crowd) in(name string) host.Runner {
	if in, ok := c.runners[name]; ok {
		return in
	}
	return absent{name: name}
}

// absent is the way into a node that does not run.
type absent struct {
	host.Runner
	name string
}

func (a absent) Run(context.Context, host.Command) error { return control.NotRunning(a.name) }

// failed names the nodes on which it failed.
func failed(endings []ending) []string {
	var names []string
	for _, e := range endings {
		if e.err != nil {
			names = append(names, e.node)
		}
	}
	return names
}

// tally says on how many nodes it succeeded, and gives the exit status of what is done on many.
func (a *app) tally(endings []ending) error {
	wrong := failed(endings)
	fmt.Fprintf(a.err, "%d of %d nodes succeeded", len(endings)-len(wrong), len(endings))
	if len(wrong) == 0 {
		fmt.Fprintln(a.err, ".")
		return nil
	}
	fmt.Fprintf(a.err, "; failed: %s.\n", phrase.List(wrong, 20))
	return problem.Status(problem.FailedNodes + min(len(wrong), 100))
}
