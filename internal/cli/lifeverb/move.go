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
		Short: "Move nodes to another host with all that is theirs",
		Long: `Moves nodes with what they have written, their own volumes, SSH host keys, name, addresses and MACs. They are copied while they run; then they stop, the rest is copied, and they start on the other host.
If that fails before a node was given away, it goes on where it was. What was cut short is brought to its end by the next run of the same command, or of orrery up.`,
		RunE: call.WithHosts(func(ctx context.Context, s *site.Site, selectors []string) error {
			if preview {
				p, err := nodes.MovePlan(ctx, call.Session, s, selectors, to)
				if err != nil {
					return err
				}
				return reply.Answer(call.Out, screen.PlanJSON(p), func() { screen.Plan(call.Out, p) })
			}
			all, err := nodes.Move(ctx, call.Session, s, selectors, to)
			return cmp.Or(err, reply.Answer(call.Out, all, func() { table.Moved(call.Out, s.Name, all, err) }))
		}),
	}
	c.Flags().StringVar(&to, "to", "", "the `HOST` to which they go")
	_ = c.MarkFlagRequired("to")
	c.Flags().BoolVar(&preview, "plan", false, "show the steps and do nothing")
	call.ProductionFlag(c)
	call.WithoutFlag(c)
	return verb.WithJSON(c, "print JSON")
}
