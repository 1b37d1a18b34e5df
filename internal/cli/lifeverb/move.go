package lifeverb

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/screen"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control/nodes"
	"orrery/internal/site"
)

// Move returns the command `orrery move`.
func Move(call *verb.Call) *cobra.Command {
	to, preview := "", false
	c := &cobra.Command{
		Use: "move SELECTOR... --to HOST", Args: cobra.MinimumNArgs(1),
		Short: "Move nodes with their data to another host",
		Example: `  orrery move 'receptor*' --to sv2
  orrery move db --to sv2 --plan`,
		Long: `Moves nodes with what they have written, their own volumes, SSH host keys,
name, addresses and MACs. Their data is copied while they run; then they stop,
the rest is copied, and they start on the other host.

If the move fails before the other host has taken over a node, the node
continues on its current host. To complete an interrupted move, run the same
command again, or "orrery up".`,
		RunE: call.WithHosts(func(ctx context.Context, s *site.Site, selectors []string) error {
			if preview {
				p, err := nodes.MovePlan(ctx, call.Session, s, selectors, to)
				if err != nil {
					return err
				}
				return reply.Answer(call.Out, screen.PlanJSON(p), func() { screen.Steps(call.Out, p) })
			}
			all, err := nodes.Move(ctx, call.Session, s, selectors, to)
			return cmp.Or(err, reply.Answer(call.Out, all, func() { table.Moved(call.Out, s.Key(), all, err) }))
		}),
	}
	c.Flags().StringVar(&to, "to", "", "move the nodes to this `HOST`")
	_ = c.MarkFlagRequired("to")
	c.Flags().BoolVar(&preview, "plan", false, "only show the steps")
	call.ProductionFlag(c)
	call.WithoutFlag(c)
	return verb.WithJSON(c, "print JSON")
}
