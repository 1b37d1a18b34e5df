package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

func (a *app) statusVerb() *cobra.Command {
	var how survey
	c := &cobra.Command{
		Use:   "status [SELECTOR...]",
		Short: "How the nodes are",
		Long: `Shows every node with its addresses and how it is, those first that are not as declared. Health is that which was proven last, and how
long ago that was; --probe tries the checks now, and looks into the nodes for what has drifted. On a terminal the columns are cut to its width.
With --watch on a terminal the arrows, PgUp and PgDn move through what does not fit, and q ends it.
The exit status is 11 if a node is not as declared.`,
		RunE: func(c *cobra.Command, args []string) error {
			how.selectors = args
			if how.watch {
				return a.watchStatus(c.Context(), &how)
			}
			return a.survey(c.Context(), &how, &table{out: a.out, width: widthOf(a.out)})
		},
	}
	c.Flags().BoolVar(&how.asJSON, "json", false, "print JSON")
	c.Flags().BoolVarP(&how.watch, "watch", "w", false, "again every second")
	c.Flags().BoolVar(&how.probe, "probe", false, "try the health checks now, and look for what has drifted")
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
func (a *app) survey(ctx context.Context, how *survey, to *table) error {
	s, err := a.load()
	if err != nil {
		return err
	}
	r, err := a.roll(ctx, s, how.selectors)
	if err != nil {
		return err
	}
	if how.probe {
		if err := r.look(ctx); err != nil {
			return err
		}
	}
	if how.usage {
		if how.before, err = r.measure(ctx, how.before); err != nil {
			return err
		}
	}
	r.sickFirst()
	if how.asJSON {
		err = printJSON(a.out, r.rows)
	} else {
		err = to.show(r.rows, how.usage)
	}
	if err == nil {
		err = a.underWay(s)
	}
	return firstError(err, verdict(r.rows))
}

// status shows how nodes are that have just been brought up.
func (a *app) status(ctx context.Context, s *site.Site, selectors []string) error {
	r, err := a.roll(ctx, s, selectors)
	if err != nil {
		return err
	}
	return (&table{out: a.out, width: widthOf(a.out)}).show(r.rows, false)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func verdict(rows []row) error {
	for _, r := range rows {
		if !r.Quarantine && !r.good() {
			return problem.Status(problem.Unhealthy)
		}
	}
	return nil
}

// underWay tells of a trial, and of a switch that was interrupted.
func (a *app) underWay(s *site.Site) error {
	h, err := a.bare(s)
	if err != nil {
		return err
	}
	r, err := h.ReadReleases()
	if err != nil {
		return err
	}
	switch {
	case r.Trial == nil:
	case a.watched(s):
		fmt.Fprintf(a.err, "orrery: release %d is on trial until %s; then it is confirmed or goes back to release %s.\n",
			r.Trial.Release, clock(r.Trial.Until), at(r.Trial.Back))
	default:
		fmt.Fprintf(a.err, "orrery: release %d is on trial until %s, but nobody watches over it: the process that did has ended (orrery resume, and whatever changes the site, sees to it).\n",
			r.Trial.Release, clock(r.Trial.Until))
	}
	if twin, so := a.forgotten(s.Key()); so {
		fmt.Fprintf(a.err, "orrery: twin %s is to end at %s, but the process that waited for that has ended (orrery resume, and whatever changes a site here, sees to it).\n",
			s.Twin, clock(twin.Expires))
	}
	if r.Switch == nil {
		return nil
	}
	return problem.New(problem.HalfWay, "a switch of %s to release %s is under way or was interrupted; the set may not be wholly at one release",
		r.Switch.Who, at(r.Switch.To)).At(s.Key()).Try("orrery up takes it to release %s", at(r.Switch.End))
}
