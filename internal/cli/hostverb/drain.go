package hostverb

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/screen"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/roster"
	"orrery/internal/plan"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
	"orrery/internal/site"
)

func hostDrain(call *verb.Call) *cobra.Command {
	d := roster.Drain{Show: movesPrinter(call.Output)}
	c := &cobra.Command{
		Use: "drain HOST", Short: "Keep new nodes away from a host, and move its nodes to others",
		Example: "  orrery host drain sv2",
		Long: `Marks a host as drained, so that no more nodes of the site are placed on it,
and moves its nodes to hosts with room for them. It shows the moves with their
reasons and asks you first. It names the nodes that cannot move, with the cure;
the exit status is then 4.

The mark is on the host itself, so every control host of the site knows of it,
and it survives a reboot. "orrery host undrain" removes it.`,
		Args: cobra.ExactArgs(1),
		RunE: call.WithHosts(func(ctx context.Context, s *site.Site, args []string) error {
			d.Host = args[0]
			m, err := d.Run(ctx, call.Session, s)
			if m == nil {
				return err
			}
			err = cmp.Or(err, reply.Answer(call.Out, m, func() { printDrained(call.Out, m, s, d.Stay, err) }))
			if err == nil && len(m.Stuck) > 0 && !d.Stay {
				return problem.Status(problem.Unable)
			}
			return err
		}),
	}
	c.Flags().BoolVar(&d.Stay, "stay", false, "do not move the nodes that are on the host")
	call.AgreeFlag(c, control.Moves, "the site's `name`, to move nodes without asking")
	call.WithoutFlag(c)
	return verb.WithJSON(c, "print JSON")
}

func printDrained(out io.Writer, m *roster.Moved, s *site.Site, stay bool, failed error) {
	if len(m.Moved) > 0 {
		table.Moved(out, s.Key(), m.Moved, failed)
	}
	if failed != nil {
		return
	}
	fmt.Fprintf(out, "%s is drained: no more nodes of the site are placed on it.\n", m.Host)
	if !stay {
		table.Moves(out, place.Moves{Stuck: m.Stuck})
	}
}

func hostUndrain(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use: "undrain HOST", Short: "Let nodes be placed on a drained host again",
		Example: "  orrery host undrain sv2",
		Args:    cobra.ExactArgs(1),
		RunE: call.WithHosts(func(ctx context.Context, s *site.Site, args []string) error {
			drained, err := roster.Undrain(ctx, call.Session, s, args[0])
			switch {
			case err != nil:
				return err
			case drained:
				fmt.Fprintf(call.Out, "%s is no longer drained; orrery rebalance moves nodes to it.\n", args[0])
			default:
				fmt.Fprintf(call.Out, "%s was not drained.\n", args[0])
			}
			return nil
		}),
	}
}

// movesPrinter returns a function that shows the user what is to be moved and how.
func movesPrinter(to verb.Output) func(place.Moves, *plan.Plan) {
	return func(m place.Moves, p *plan.Plan) {
		if reply.IsJSON(to.Out) {
			return
		}
		table.Moves(to.Err, m)
		screen.Steps(to.Err, p)
	}
}
