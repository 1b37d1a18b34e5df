package cli

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/site"
)

func (a *app) upVerb() *cobra.Command {
	how := control.UpOptions{Parallel: control.DefaultParallel()}
	c := &cobra.Command{
		Use:   "up [SELECTOR...]",
		Short: "Make the hosts as declared: nodes running, configured and healthy",
		Long: `Makes the hosts as the site file declares: builds the layers that are missing, makes networks and nodes,
applies roles and waits until every node is healthy. What is as declared already is left alone.
With --probe it also looks into the nodes that run, and mends what of them is no longer as their roles and layers made it; what neither a
role nor a layer has put there is left alone. Without a selector, nodes and networks that are no longer declared are removed.

Where a group has a batch, or with --batch, running nodes that have to be disturbed are so in batches: each begins when the nodes of the one before
are healthy, and none begins after one that failed. The nodes of that are put back as they were.`,
		RunE: func(c *cobra.Command, args []string) error {
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
	c.Flags().BoolVar(&how.Undo, "undo", false, "take everything back if anything fails")
	c.Flags().BoolVar(&how.Probe, "probe", false, "look into the nodes that run, and mend what has drifted")
	c.Flags().IntVar(&how.Parallel, "parallel", how.Parallel, "most steps under way at once")
	batchFlag(c, &how.Batch)
	return c
}

// tellUp shows how the nodes of a site are that has been brought up.
func (a *app) tellUp(ctx context.Context, s *site.Site, selectors []string, result *apply.Result) error {
	if result == nil {
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
