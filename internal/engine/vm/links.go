package vm

import (
	"context"
	"time"

	"orrery/internal/host"
	"orrery/internal/network"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// MoveLinks moves the links of a running machine that are on the wrong bridge, all or none.
func MoveLinks(ctx context.Context, n *spec.Node, guest host.Runner) error {
	if moves := network.MovesOf(n); len(moves) > 0 {
		if err := network.MoveLinks(ctx, moves); err != nil {
			return err
		}
	}
	// The links may have left quarantine in one batch with those of other nodes.
	if !n.Staged && n.Disk.Guest != site.NoGuest {
		flushNeighbours(ctx, guest)
	}
	return nil
}

// flushNeighbours makes a guest resolve its neighbours again, because on its new networks other
// nodes have their addresses. A guest that cannot flush them resolves a neighbour again when it
// does not answer.
func flushNeighbours(ctx context.Context, guest host.Runner) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_ = guest.Run(ctx, host.Command{Args: []string{"ip", "neighbour", "flush", "all"}})
}
