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
		Use: "drain HOST", Short: "Keep new nodes away from a host, and move those on it to others",
		Long: `Puts a mark on a host that no node of the site comes to it any more, and moves those that are on it to hosts with room for them. What is to move is shown with the reason, and you are asked first. What cannot go is
named, with the cure; the exit status is 4 then. The mark is on the host itself, so every machine that steers the site knows of it, and it survives a reboot; "orrery host undrain" takes it away.`,
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
	c.Flags().BoolVar(&d.Stay, "stay", false, "let the nodes that are on it stay there")
	call.AgreeFlag(c, control.Moves, "the `name` of the site, so that you are not asked before nodes move")
	call.WithoutFlag(c)
	return verb.WithJSON(c, "print JSON")
}

func printDrained(out io.Writer, m *roster.Moved, s *site.Site, stay bool, failed error) {
	if len(m.Moved) > 0 {
		table.Moved(out, s.Name, m.Moved, failed)
	}
	if failed != nil {
		return
	}
	fmt.Fprintf(out, "%s is drained: no node of the site comes to it any more.\n", m.Host)
	if !stay {
		table.Moves(out, place.Moves{Stuck: m.Stuck})
	}
}

func hostUndrain(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use: "undrain HOST", Short: "Let nodes come to a host again that was drained", Args: cobra.ExactArgs(1),
		RunE: call.WithHosts(func(ctx context.Context, s *site.Site, args []string) error {
			drained, err := roster.Undrain(ctx, call.Session, s, args[0])
			switch {
			case err != nil:
				return err
			case drained:
				fmt.Fprintf(call.Out, "Nodes may come to %s again; orrery rebalance moves some there.\n", args[0])
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
		screen.Plan(to.Err, p)
	}
}
