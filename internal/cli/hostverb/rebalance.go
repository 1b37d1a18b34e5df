package hostverb

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/roster"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Rebalance returns the command `orrery rebalance`.
func Rebalance(call *verb.Call) *cobra.Command {
	dry := false
	c := &cobra.Command{
		Use: "rebalance", Short: "Move nodes to spread groups and to fill hosts evenly",
		Example: "  orrery rebalance --dry-run",
		Args:    cobra.NoArgs,
		Long: `Proposes which nodes of the site to move to other hosts, and why: first nodes
of groups with spread = "host" that are too many on one host, then nodes that
make one host fuller than others. It moves as few nodes as possible, since each
one pauses for a moment. It does not move nodes with host = in the site file,
nor nodes tied to their host by a device. You are asked before anything is
done.

With --dry-run, it only proposes; the exit status is 0 if there is nothing to
move, and otherwise 10.`,
		RunE: call.WithHosts(func(ctx context.Context, s *site.Site, _ []string) error {
			if dry {
				return propose(ctx, call.Session, call.Out, s)
			}
			m, err := roster.Rebalance(ctx, call.Session, s, movesPrinter(call.Output))
			if m == nil {
				return err
			}
			return cmp.Or(err, reply.Answer(call.Out, m, func() {
				if err == nil && len(m.Moves.Moves) == 0 {
					fmt.Fprintf(call.Out, "%s: nothing to move.\n", s.Key())
				} else if len(m.Moved) > 0 {
					table.Moved(call.Out, s.Key(), m.Moved, err)
				}
			}))
		}),
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would be moved, and why")
	call.AgreeFlag(c, control.Moves, "the site's `name`, to move nodes without asking")
	call.WithoutFlag(c)
	return verb.WithJSON(c, "print JSON")
}

// propose prints what would be moved.
func propose(ctx context.Context, session *control.Session, out io.Writer, s *site.Site) error {
	moves, err := roster.ProposeMoves(ctx, session, s)
	if err != nil {
		return err
	}
	if err := reply.Answer(out, moves, func() {
		if len(moves.Moves) == 0 {
			fmt.Fprintf(out, "%s: nothing to move.\n", s.Key())
		}
		table.Moves(out, moves)
	}); err != nil || len(moves.Moves) == 0 {
		return err
	}
	return problem.Status(problem.Changes)
}
