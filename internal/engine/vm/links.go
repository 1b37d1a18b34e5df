package vm

import (
	"context"
	"time"

	"orrery/internal/host"
	"orrery/internal/network"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// MoveLinks moves the links of a running machine that are not on the bridges where they shall be, all or none.
func MoveLinks(ctx context.Context, n *spec.Node, guest host.Runner) error {
	if moves := network.MovesOf(n); len(moves) > 0 {
		if err := network.MoveLinks(ctx, moves); err != nil {
			return err
		}
	}
	if !n.Staged && n.Disk.Guest != site.NoGuest { // its links may have left quarantine, in one batch with others
		forgetNeighbours(ctx, guest)
	}
	return nil
}

// forgetNeighbours lets a guest look for its neighbours anew: where its links are now, others have
// their addresses. A guest that cannot does so by itself when nobody answers.
func forgetNeighbours(ctx context.Context, guest host.Runner) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_ = guest.Run(ctx, host.Command{Args: []string{"ip", "neighbour", "flush", "all"}})
}
