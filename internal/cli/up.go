package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
)

func (a *app) upVerb() *cobra.Command {
	how := manner{parallel: defaultParallel()}
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
			s, err := a.load()
			if err != nil {
				return err
			}
			if over, err := a.restoreFirst(c.Context(), s); err != nil || over {
				return err
			}
			return a.up(c.Context(), s, args, how)
		},
	}
	how.consent.flags(c)
	c.Flags().BoolVar(&how.undo, "undo", false, "take everything back if anything fails")
	c.Flags().BoolVar(&how.probe, "probe", false, "look into the nodes that run, and mend what has drifted")
	c.Flags().IntVar(&how.parallel, "parallel", how.parallel, "most steps under way at once")
	batchFlag(c, &how.batch)
	return c
}

// A manner is how a site is brought up.
type manner struct {
	consent  consent
	undo     bool // take everything back if anything fails
	probe    bool // look into the nodes that run, and mend what has drifted
	parallel int
	batch    site.Batch
}

// up brings a site up, and goes on with the trial of a release, also if not all of the site comes up.
func (a *app) up(ctx context.Context, s *site.Site, selectors []string, how manner) (err error) {
	chosen, err := choose(s, selectors)
	if err != nil {
		return err
	}
	h, err := a.here(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.resumeTrial(ctx, s)) }()
	if err := a.fillOnce(ctx, s); err != nil {
		return err
	}
	j := &job{app: a, site: s, base: s, host: h, undo: how.undo, parallel: how.parallel, begin: func() error { return a.markUp(s) }, plan: func(hosts []observe.Host) (*plan.Plan, error) {
		return plan.Up(s, hosts, plan.Goal{Nodes: chosen, Batch: how.batch, Releases: h.Releases})
	}}
	if how.probe {
		j.probe = func(hosts []observe.Host) error { return a.probe(ctx, h, hosts, chosen) }
	}
	j.ask = func(p *plan.Plan) error {
		tellOrphans(a.err, p.Orphans)
		disturbed := p.Disturbed()
		if len(disturbed) == 0 {
			return nil
		}
		return a.askProduction(s, "Disturbed would be "+shortList(disturbed, 12)+".", how.consent)
	}
	result, err := j.run(ctx)
	if err != nil {
		return err
	}
	if err := a.scheduleMirrors(ctx, s); err != nil {
		return err
	}
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
