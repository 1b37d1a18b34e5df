package backup

import (
	"context"
	"errors"
	"sync"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/record"
	"orrery/internal/observe"
)

// Frozen does something while nodes stand still, and tells for how long they did. Nodes that do not run are left as they are.
func Frozen(ctx context.Context, engines map[string]engine.Engine, nodes []record.Record, do func(context.Context) error) (time.Duration, error) {
	begun := time.Now()
	thaw, err := freeze(ctx, engines, nodes)
	if err == nil {
		err = do(ctx)
	}
	// Whatever happens, and whoever is impatient: they go on.
	err = errors.Join(err, thaw(context.WithoutCancel(ctx)))
	return time.Since(begun), err
}

// freeze lets all nodes stand still, at the same time.
func freeze(ctx context.Context, engines map[string]engine.Engine, nodes []record.Record) (thaw func(context.Context) error, err error) {
	each := func(ctx context.Context, do func(context.Context, engine.Freezer, engine.Ref) error) error {
		errs := make([]error, len(nodes))
		var all sync.WaitGroup
		for i := range nodes {
			if f, ok := engines[nodes[i].Engine].(engine.Freezer); ok {
				all.Go(func() { errs[i] = do(ctx, f, engine.RefOf(&nodes[i].Node)) })
			}
		}
		all.Wait()
		return errors.Join(errs...)
	}
	thaw = func(ctx context.Context) error {
		return each(ctx, func(ctx context.Context, f engine.Freezer, ref engine.Ref) error { return f.Thaw(ctx, ref) })
	}
	return thaw, each(ctx, func(ctx context.Context, f engine.Freezer, ref engine.Ref) error { return f.Freeze(ctx, ref) })
}

// Running gives those nodes that run.
func Running(ctx context.Context, engines map[string]engine.Engine, key string, nodes []record.Record) ([]record.Record, error) {
	states := map[int]observe.State{}
	for _, e := range engines {
		seen, err := e.List(ctx, key)
		if err != nil {
			return nil, err
		}
		for _, n := range seen {
			states[n.ID] = n.State
		}
	}
	var all []record.Record
	for _, n := range nodes {
		if states[n.ID] == observe.Running {
			all = append(all, n)
		}
	}
	return all, nil
}
