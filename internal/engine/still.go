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

// Running returns the nodes of a site that run or are frozen. It returns an error if an engine
// cannot list its nodes, because an overlooked node would go on writing while the others are
// frozen.
func Running(ctx context.Context, engines map[string]Engine, site string) ([]*spec.Node, error) {
	var running []*spec.Node
	for name, e := range engines {
		nodes, err := e.List(ctx, site)
		if err != nil {
			return nil, problem.New(problem.Failed, "engine %s: running nodes of %s cannot be listed", name, site).Because(err)
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

// CheckFreezable returns an Unable problem if the engine of a node cannot freeze it.
func CheckFreezable(engines map[string]Engine, nodes []*spec.Node) error {
	for _, n := range nodes {
		if _, ok := engines[n.Engine].(Freezer); !ok {
			return problem.New(problem.Unable, "node %s is running, and its engine %q cannot freeze it", n.Name, n.Engine).
				Try("orrery stop %s, then run the same command again", n.Name)
		}
	}
	return nil
}

// A Pause records how nodes were frozen.
type Pause struct {
	Began time.Time     // when the first node was asked to freeze
	At    time.Time     // when all nodes were frozen
	Long  time.Duration // from asking the first node until the last one was thawed
	Skew  time.Duration // between freezing the first and the last node
}

// WhileFrozen calls do while nodes are frozen. It thaws all of them when do returns, even if do or the
// thawing of another node fails. For a node that cannot be thawed, it returns a Left problem.
func WhileFrozen(ctx context.Context, engines map[string]Engine, nodes []*spec.Node,
	do func(context.Context) error) (Pause,
	error) {
	return WhileFrozenAt(ctx, engines, nodes, time.Time{}, func(ctx context.Context, _ Pause) error { return do(ctx) })
}

// maxStartDelay is the longest that WhileFrozenAt waits for its start time. No hosts agree on a time further
// ahead.
const maxStartDelay = 2 * time.Second

// WhileFrozenAt is like WhileFrozen, but freezes the nodes at the time at and passes the Pause to do.
func WhileFrozenAt(ctx context.Context, engines map[string]Engine, nodes []*spec.Node, at time.Time,
	do func(context.Context, Pause) error) (Pause, error) {
	if err := CheckFreezable(engines, nodes); err != nil {
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
		if err := host.Sleep(ctx, min(wait, maxStartDelay)); err != nil {
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
			return problem.New(problem.Left, "node %s is still frozen", n.Name).Because(err).
				Try("every orrery command that changes the site thaws it first, for instance orrery up")
		}
		return nil
	})
}

// each calls do for all nodes at once and returns all errors.
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
