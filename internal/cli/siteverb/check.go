// Package siteverb has the verbs that create and read a site directory.
package siteverb

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/screen"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/roster"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// Check returns the command `orrery check`.
func Check(call *verb.Call) *cobra.Command {
	survive := 0
	c := &cobra.Command{
		Use:   "check",
		Short: "Report every mistake in the site directory and how to fix it",
		Example: `  orrery check
  orrery -C /srv/sites/karoo check --survive 1`,
		Long: `Reports every mistake in the site directory: where it is and how to fix it.

With --survive, it asks the hosts for their resources, and calculates whether
the others have room for all nodes, whichever N of the hosts are lost.`,
		Args: cobra.NoArgs,
		RunE: call.WithSite(func(ctx context.Context, s *site.Site, _ []string) error {
			if err := roster.Check(s); err != nil {
				return err
			}
			if survive != 0 {
				return checkLosses(ctx, call.Session, call.Out, s, survive)
			}
			counts := map[string]any{"site": s.Name, "nodes": len(s.Nodes), "roles": len(s.Roles), "networks": len(s.Networks)}
			return reply.Answer(call.Out, counts, func() {
				fmt.Fprintf(call.Out, "%s: %s, %s, %s: ", s.Name,
					humanize.Plural(len(s.Nodes), "node"), humanize.Plural(len(s.Roles), "role"),
					humanize.Plural(len(s.Networks), "network"))
				screen.Paint(call.Out, "no mistakes", screen.Good)
				fmt.Fprintln(call.Out, ".")
			})
		}),
	}
	c.Flags().IntVar(&survive, "survive", 0,
		"check that all nodes fit if any `n` of the hosts are lost")
	return c
}

// checkLosses checks from the declarations whether the site fits if any of its hosts are lost.
func checkLosses(ctx context.Context, session *control.Session, out io.Writer, s *site.Site, lost int) error {
	all, err := roster.SimulateLosses(ctx, session, s, lost)
	if err != nil {
		return err
	}
	if err := reply.Answer(out, all, func() { table.Losses(out, all) }); err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(l place.HostLoss) bool { return !l.IsHarmless() }) {
		return problem.Status(problem.Unable)
	}
	return nil
}
