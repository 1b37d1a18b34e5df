package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/screen"
	"orrery/internal/cli/table"
	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

func (a *app) statusVerb() *cobra.Command {
	var how survey
	c := &cobra.Command{
		Use:   "status [SELECTOR...]",
		Short: "Show how the nodes are",
		Long: `Shows every node with its addresses, state and health; nodes that are not as declared come first. Health is what the last check found, and how long
ago that was. --probe runs the checks now and looks for drift. On a terminal the columns are cut to fit.
With --watch on a terminal, scroll with the arrow keys, PgUp and PgDn, and press q to quit.
The exit status is 11 if a node is not as declared.`,
		RunE: func(c *cobra.Command, args []string) error {
			how.selectors = args
			if how.watch {
				return a.watchStatus(c.Context(), &how)
			}
			return a.survey(c.Context(), &how, screen.Width(a.out))
		},
	}
	c.Flags().BoolVar(&how.asJSON, "json", false, "print JSON")
	c.Flags().BoolVarP(&how.watch, "watch", "w", false, "show it again every second")
	c.Flags().BoolVar(&how.probe, "probe", false, "run the health checks now, and look for drift")
	c.Flags().BoolVar(&how.usage, "usage", false, "show the processors, memory and disk that each node uses now, instead of addresses and roles")
	return c
}

// A survey is what status is asked for.
type survey struct {
	selectors     []string
	asJSON, watch bool
	probe, usage  bool
	before        map[int]host.Sample // by id, of the round before
}

// survey shows how the nodes are, once.
func (a *app) survey(ctx context.Context, how *survey, width int) error {
	s, err := a.Load()
	if err != nil {
		return err
	}
	r, err := a.Status(ctx, s, how.selectors)
	if err != nil {
		return err
	}
	if how.probe {
		if err := r.Probe(ctx); err != nil {
			return err
		}
	}
	if how.usage {
		if how.before, err = r.Measure(ctx, how.before); err != nil {
			return err
		}
	}
	r.SickFirst()
	if how.asJSON {
		err = reply.JSON(a.out, r.Nodes)
	} else {
		err = table.Nodes(a.out, r.Nodes, how.usage, width)
	}
	if err == nil {
		err = a.UnderWay(s)
	}
	return cmp.Or(err, verdict(r.Nodes))
}

// status shows how nodes are that have just been brought up.
func (a *app) status(ctx context.Context, s *site.Site, selectors []string) error {
	r, err := a.Status(ctx, s, selectors)
	if err != nil {
		return err
	}
	if reply.Wanted(a.out) {
		return reply.JSON(a.out, r.Nodes)
	}
	return table.Nodes(a.out, r.Nodes, false, screen.Width(a.out))
}

func verdict(rows []control.NodeStatus) error {
	for _, r := range rows {
		if !r.Quarantine && !r.Good() {
			return problem.Status(problem.Unhealthy)
		}
	}
	return nil
}
