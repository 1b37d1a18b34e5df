package cli

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"orrery/internal/apply"
	"orrery/internal/cli/reply"
	"orrery/internal/control"
	"orrery/internal/site"
)

func (a *app) upVerb() *cobra.Command {
	dry := false
	how := control.UpOptions{Parallel: control.DefaultParallel()}
	c := &cobra.Command{
		Use:   "up [SELECTOR...]",
		Short: "Bring the site up as declared: nodes running, configured and healthy",
		Long: `Brings the site up as the site file declares it: builds missing layers, makes networks and nodes, applies roles and waits until every node is healthy.
What is already as declared is left alone. With --probe it also looks into the running nodes and repairs drift: whatever is no longer as roles and
layers made it. Without a selector, it removes nodes and networks that are no longer declared.

With --batch, or if a group sets a batch, running nodes are disturbed in batches. Each batch begins when the nodes of the one before are healthy. If a batch
fails, its nodes are put back as they were, and no other begins.`,
		RunE: func(c *cobra.Command, args []string) error {
			if dry {
				return a.preview(c.Context(), args, &view{asJSON: reply.Wanted(a.out), probe: how.Probe, batch: how.Batch})
			}
			s, err := a.Load()
			if err != nil {
				return err
			}
			result, elsewhere, err := a.Up(c.Context(), s, args, how)
			if elsewhere != "" {
				fmt.Fprintf(a.err, "orrery: %s is up from %s, and not from the directory where this command was given.\n", s.Key(), elsewhere)
				return nil
			}
			if err != nil {
				return err
			}
			return a.tellUp(c.Context(), s, args, result)
		},
	}
	a.productionFlag(c)
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would be done, as orrery plan does")
	c.Flags().BoolVar(&how.Undo, "undo", false, "undo everything if anything fails")
	c.Flags().BoolVar(&how.Probe, "probe", false, "look for drift in the running nodes, and repair it")
	c.Flags().IntVar(&how.Parallel, "parallel", how.Parallel, "how many steps at once, at most")
	batchFlag(c, &how.Batch)
	return c
}

// tellUp shows how the nodes of a site are that has been brought up.
func (a *app) tellUp(ctx context.Context, s *site.Site, selectors []string, result *apply.Result) error {
	if result == nil && !reply.Wanted(a.out) {
		fmt.Fprintf(a.out, "%s is up: nothing to do.\n", s.Key())
		return nil
	}
	if err := a.status(ctx, s, selectors); err != nil {
		return err
	}
	a.howToGoOn(s)
	return nil
}

// howToGoOn says what a user may want to do next.
func (a *app) howToGoOn(s *site.Site) {
	first := "NODE"
	if len(s.Nodes) > 0 {
		first = s.Nodes[0].Name
	}
	orrery, down := "orrery", "orrery down"
	end := "end it all; volumes are kept"
	if s.Twin != "" {
		orrery += " --twin " + s.Twin
		down, end = "orrery twin destroy "+s.Twin, "end it all"
	}
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\n  %s shell %s\ta terminal in a node\n  %s status\thow the nodes are\n  %s\t%s\n", orrery, first, orrery, down, end)
	_ = t.Flush()
}
