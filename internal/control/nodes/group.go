// Package nodes works with many nodes at once: it runs commands in them, copies files to and from
// them, reads their logs, and publishes their ports.
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

// A Group is a set of nodes on which the same work is done, on several at once.
type Group struct {
	Nodes    []*site.Node
	Roll     *way.Directory         // the site's nodes, including these
	Runners  map[string]host.Runner // of the nodes that run
	Parallel int
	Timeout  time.Duration // for each node, or 0 for none
}

// NewGroup returns the nodes that match selectors. Parallel is how many of them to work on at once.
func NewGroup(ctx context.Context, c *control.Session, s *site.Site, selectors []string, parallel int) (*Group, error) {
	chosen, err := selector.Select(s, selectors...)
	if err != nil {
		return nil, err
	}
	roll, err := way.NewDirectory(ctx, c, s)
	if err != nil {
		return nil, err
	}
	runners, err := roll.Runners()
	return &Group{Nodes: chosen, Roll: roll, Runners: runners, Parallel: parallel}, err
}

// An Result is the result of work on one node.
type Result struct {
	Node string
	Err  error
	Took time.Duration
}

// do calls work for each node, and ended for each node that is done. It returns the results in the
// order of the nodes.
func (c *Group) do(ctx context.Context, work func(ctx context.Context, i int, in host.Runner) error,
	ended func(i int, e Result)) []Result {
	endings := make([]Result, len(c.Nodes))
	one := func(i int) {
		n, began := c.Nodes[i], time.Now()
		err := c.withTimeout(ctx, func(ctx context.Context) error { return work(ctx, i, c.runner(n.Name)) })
		endings[i] = Result{n.Name, err, time.Since(began)}
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

// withTimeout runs work with a timeout. If the timeout expires, it returns the cause, because the error
// of work says less.
func (c *Group) withTimeout(ctx context.Context, work func(context.Context) error) error {
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

// RunShown calls do for each node and displays what the nodes print.
func (c *Group) RunShown(ctx context.Context, show Output,
	do func(ctx context.Context, i int, in host.Runner, to NodeOutput) error) ([]Result, error) {
	speakers := make([]NodeOutput, len(c.Nodes))
	for i := range speakers {
		speakers[i] = show.Of(i)
	}
	endings := c.do(ctx,
		func(ctx context.Context, i int, in host.Runner) error { return do(ctx, i, in, speakers[i]) },
		func(i int, e Result) { speakers[i].End(e) })
	if err := show.Close(); err != nil || ctx.Err() == nil {
		return endings, err
	}
	return endings, problem.New(problem.Interrupted, "interrupted").
		Try("the lines above show where it completed; run the same command again for the other nodes")
}

// runner returns the runner of a node. If there is none, the runner returns an error that says so.
func (c *Group) runner(name string) host.Runner {
	if in, ok := c.Runners[name]; ok {
		return in
	}
	if c.Roll == nil {
		return absentNode{why: way.NotRunningError(name)}
	}
	return absentNode{why: c.Roll.Absence(name)}
}

// absentNode is the runner of a node that does not run, or is frozen.
type absentNode struct {
	host.Runner
	why error
}

func (a absentNode) Run(context.Context, host.Command) error { return a.why }

// Failed returns the names of the nodes that failed.
func Failed(endings []Result) []string {
	var names []string
	for _, e := range endings {
		if e.Err != nil {
			names = append(names, e.Node)
		}
	}
	return names
}

// An Output displays what many nodes print at once. Whatever a node prints, its lines cannot be
// mistaken for those of another node.
type Output interface {
	Of(i int) NodeOutput
	Close() error // after all nodes have ended
}

// A NodeOutput displays what one node prints, and its result.
type NodeOutput interface {
	Out() io.Writer
	Errs() io.Writer
	End(Result)
}
