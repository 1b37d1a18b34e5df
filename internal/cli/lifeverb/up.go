// Package lifeverb has the verbs that bring nodes up and down, start, stop and move them.
package lifeverb

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/cli/screen"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/sites"
	"orrery/internal/site"
)

// Up returns the command `orrery up`.
func Up(call *verb.Call) *cobra.Command {
	dry := false
	var how sites.UpOptions
	c := &cobra.Command{
		Use:   "up [SELECTOR...]",
		Short: "Bring the site up as declared: running, configured and healthy",
		Example: `  orrery up
  orrery up portal db
  orrery up --dry-run`,
		Long: `Brings the site up as the site file declares it: builds missing layers, creates
networks and nodes, applies roles and waits until every node is healthy. It
does not change what is already as declared. With --probe it also looks into
the running nodes and repairs drift: whatever is no longer as roles and layers
made it. Without a selector, it removes nodes and networks that are no longer
declared.

With --batch, or if a group sets a batch, running nodes are disturbed in
batches. Each batch begins when the nodes of the previous one are healthy. If a
batch fails, its nodes are put back as they were, and no further batch begins.

On a terminal, it asks before it destroys or recreates nodes. With --yes, or
without a terminal, it does not ask, unless the site is in production.`,
		RunE: func(c *cobra.Command, args []string) error {
			if dry {
				return preview(c.Context(), call.Session, call.Out, args, sites.PreviewOptions{Probe: how.Probe, Batch: how.Batch},
					screen.Plan)
			}
			return call.WithSite(func(ctx context.Context, s *site.Site, selectors []string) error {
				return bringUp(ctx, call.Session, call.Output, s, selectors, how)
			})(c, args)
		},
	}
	call.ProductionFlag(c)
	call.YesFlag(c)
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would be done, as orrery plan does")
	c.Flags().BoolVar(&how.Undo, "undo", false, "undo everything if anything fails")
	c.Flags().BoolVar(&how.Probe, "probe", false, "look for drift in the running nodes, and repair it")
	verb.ParallelFlag(c, &how.Parallel)
	verb.BatchFlag(c, &how.Batch)
	call.WithoutFlag(c)
	return c
}

func bringUp(ctx context.Context, session *control.Session, to verb.Output, s *site.Site, selectors []string,
	how sites.UpOptions) error {
	result, elsewhere, err := sites.Up(ctx, session, s, selectors, how)
	if elsewhere != "" {
		fmt.Fprintf(to.Err, "orrery: %s is up from %s, and not from the directory where this command was given.\n", s.Key(),
			elsewhere)
		return nil
	}
	return verb.PrintUp(ctx, session, to.Out, s, selectors, result, err)
}
