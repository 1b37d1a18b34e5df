package vm

import (
	"context"
	"errors"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/problem"
)

// sweepTimeout is how long what a killed run has begun may take to end.
const sweepTimeout = 90 * time.Second

// Sweep brings to an end what a killed run has begun with machines of a site, each by itself, and
// removes what it left beside the nodes. Commands in guests end by themselves with whoever gave
// them: the agent sees to it.
func Sweep(ctx context.Context, nodes *nodedir.Nodes, site string, left *problem.Problem,
	sweep func(context.Context, engine.Ref) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, sweepTimeout, left)
	defer cancel()
	err := nodes.Each(site, func(r *nodedir.Record) error { return sweep(ctx, engine.RefOf(&r.Node)) })
	return errors.Join(err, nodes.Sweep(site))
}
