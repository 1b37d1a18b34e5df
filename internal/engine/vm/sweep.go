package vm

import (
	"context"
	"errors"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/problem"
)

// sweepTimeout limits how long Sweep waits for what a killed run has started.
const sweepTimeout = 90 * time.Second

// Sweep calls sweep for all machines of a site at once, and then removes what killed runs left
// beside the nodes. Commands in guests need no sweep, because the agent ends them when their caller
// dies.
func Sweep(ctx context.Context, nodes *nodedir.Nodes, site string, left *problem.Problem,
	sweep func(context.Context, engine.Ref) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, sweepTimeout, left)
	defer cancel()
	err := nodes.Each(site, func(r *nodedir.Record) error { return sweep(ctx, engine.RefOf(&r.Node)) })
	return errors.Join(err, nodes.Sweep(site))
}
