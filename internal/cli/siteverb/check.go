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
	survive, watch := 0, false
	c := &cobra.Command{
		Use:   "check",
		Short: "Report every mistake in the site directory and how to fix it",
		Example: `  orrery check
  orrery -C /srv/sites/karoo check --survive 1
  orrery check --watch`,
		Long: `Reports every mistake in the site directory: where it is and how to fix it.

It also names the roles that no node has, in any release or twin.

With --survive, it asks the hosts for their resources, and calculates whether
the others have room for all nodes, whichever N of the hosts are lost.

With --watch, it checks until you end it (Ctrl-C), and prints the result again
when a change of the files changes it.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if watch && reply.IsJSON(call.Out) {
				return problem.New(problem.Usage, "--watch prints no JSON").Try("run orrery check --json again and again")
			}
			if watch {
				return watchCheck(c.Context(), call.Out, func(out io.Writer) error {
					s, err := call.Session.Load()
					if err != nil {
						return err
					}
					return checkOnce(out, s)
				}, watchPause)
			}
			return call.WithSite(func(ctx context.Context, s *site.Site, _ []string) error {
				if survive != 0 {
					if err := roster.Check(s); err != nil {
						return err
					}
					return checkLosses(ctx, call.Session, call.Out, s, survive)
				}
				return checkOnce(call.Out, s)
			})(c, args)
		},
	}
	c.Flags().IntVar(&survive, "survive", 0,
		"check that all nodes fit if any `n` of the hosts are lost")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "check again when files change")
	c.MarkFlagsMutuallyExclusive("survive", "watch")
	return c
}

// checkOnce prints what a site without mistakes consists of.
func checkOnce(out io.Writer, s *site.Site) error {
	if err := roster.Check(s); err != nil {
		return err
	}
	unused := s.UnusedRoles()
	counts := map[string]any{"site": s.Name, "nodes": len(s.Nodes), "roles": len(s.Roles), "unused": unused,
		"networks": len(s.Networks)}
	return reply.Answer(out, counts, func() {
		roles := humanize.Plural(len(s.Roles), "role")
		if len(unused) > 0 {
			roles += fmt.Sprintf(" (%d of them unused: %s)", len(unused), humanize.List(unused, 12))
		}
		fmt.Fprintf(out, "%s: %s, %s, %s: ", s.Name, humanize.Plural(len(s.Nodes), "node"), roles,
			humanize.Plural(len(s.Networks), "network"))
		screen.Paint(out, "no mistakes", screen.Good)
		fmt.Fprintln(out, ".")
	})
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
