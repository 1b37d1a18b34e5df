package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// Running returns the nodes of a site that run or stand still. That an engine cannot tell is an
// error: a node that is overlooked goes on writing while others stand still.
func Running(ctx context.Context, engines map[string]Engine, site string) ([]*spec.Node, error) {
	var running []*spec.Node
	for name, e := range engines {
		nodes, err := e.List(ctx, site)
		if err != nil {
			return nil, problem.New(problem.Failed, "the engine %s cannot tell which nodes of %s run", name, site).Because(err)
		}
		for i := range nodes {
			if nodes[i].Runs() {
				running = append(running, &nodes[i].Node)
			}
		}
	}
	slices.SortFunc(running, func(a, b *spec.Node) int { return a.ID - b.ID })
	return running, nil
}

// MayStandStill wants that all of these nodes can be made to stand still.
func MayStandStill(engines map[string]Engine, nodes []*spec.Node) error {
	for _, n := range nodes {
		if _, ok := engines[n.Engine].(Freezer); !ok {
			return problem.New(problem.Unable, "node %s runs, and its engine %q cannot let it stand still", n.Name, n.Engine).
				Try("orrery stop %s, then run the same command again", n.Name)
		}
	}
	return nil
}

// A Pause is how nodes stood still.
type Pause struct {
	Began time.Time     // when the first was asked to
	At    time.Time     // when all of them did
	Long  time.Duration // from the first that was asked to until the last went on
	Skew  time.Duration // between the first that stood still and the last
}

// Still does something while running nodes stand still. They go on when it is done, however it
// ends, and whatever becomes of the others; one that does not is told of, as a problem of the kind
// Left.
func Still(ctx context.Context, engines map[string]Engine, nodes []*spec.Node, do func(context.Context) error) (Pause,
	error) {
	return StillAt(ctx, engines, nodes, time.Time{}, func(ctx context.Context, _ Pause) error { return do(ctx) })
}

// maxAhead is how far off a moment may be at which nodes are to stand still: what is farther,
// nobody has agreed on.
const maxAhead = 2 * time.Second

// StillAt does the same with nodes that stand still at a moment, and says how they did.
func StillAt(ctx context.Context, engines map[string]Engine, nodes []*spec.Node, at time.Time,
	do func(context.Context, Pause) error) (Pause, error) {
	if err := MayStandStill(engines, nodes); err != nil {
		return Pause{}, err
	}
	if len(nodes) == 0 {
		p := Pause{At: time.Now()}
		return p, do(ctx, p)
	}
	_ = each(nodes, func(_ int, n *spec.Node) error {
		if f, ok := engines[n.Engine].(Flusher); ok {
			f.Flush(ctx, RefOf(n))
		}
		return nil
	})
	if wait := time.Until(at); wait > 0 {
		if err := host.Pause(ctx, min(wait, maxAhead)); err != nil {
			return Pause{}, err
		}
	}
	var p Pause
	p.Began = time.Now()
	still := make([]time.Time, len(nodes))
	err := each(nodes, func(i int, n *spec.Node) error {
		err := engines[n.Engine].(Freezer).Freeze(ctx, RefOf(n))
		still[i] = time.Now()
		return err
	})
	if err == nil {
		p.At = time.Now()
		p.Skew = slices.MaxFunc(still, time.Time.Compare).Sub(slices.MinFunc(still, time.Time.Compare))
		err = do(ctx, p)
	}
	err = errors.Join(err, thaw(context.WithoutCancel(ctx), engines, nodes))
	p.Long = time.Since(p.Began)
	return p, err
}

func thaw(ctx context.Context, engines map[string]Engine, nodes []*spec.Node) error {
	return each(nodes, func(_ int, n *spec.Node) error {
		if err := engines[n.Engine].(Freezer).Thaw(ctx, RefOf(n)); err != nil {
			return problem.New(problem.Left, "node %s still stands still", n.Name).Because(err).
				Try("every orrery command that changes the site lets it go on first, for instance orrery up")
		}
		return nil
	})
}

// each does something with all nodes at once, and returns all that went wrong.
func each(nodes []*spec.Node, do func(int, *spec.Node) error) error {
	errs := make([]error, len(nodes))
	var all errgroup.Group
	for i, n := range nodes {
		all.Go(func() error {
			errs[i] = do(i, n)
			return nil
		})
	}
	_ = all.Wait()
	return errors.Join(errs...)
}
