package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"orrery/internal/apply/local"
	"orrery/internal/control"
	"orrery/internal/engine"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

func (a *app) volumeAdopt() *cobra.Command {
	c := &cobra.Command{
		Use:   "adopt FORMER NODE [VOLUME...]",
		Short: "Give a node the data of a node that was renamed",
		Long: `Gives NODE the volumes of FORMER, a node that was renamed and is no longer declared, or that no longer uses them. Without VOLUME, it takes all volumes
that NODE uses and FORMER had. WAS=IS names a volume that was renamed as well. FORMER itself is destroyed, as up would do. If NODE has data of its own, it
is kept as NODE.before. NODE must not be running; the next up applies its roles to the data.`,
		Example: "  orrery volume adopt db0 db",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			s, h, _, err := a.Target(nil)
			if err != nil {
				return err
			}
			n, err := control.Declared(s, args[1])
			if err != nil {
				return err
			}
			heir, err := spec.NewMaker(s).Node(n)
			if err != nil {
				return err
			}
			all, err := volume.Adoptions(a.Dirs, s.Key(), args[0], heir, args[2:])
			if err != nil {
				return err
			}
			return a.Locked(c.Context(), s, h, func(r *control.Account) error {
				return a.adopt(c.Context(), r, s, h, args[0], heir, all)
			})
		},
	}
	a.productionFlag(c)
	return c
}

// adopt ends what is there of a former node, and gives its data to the heir. The caller has the site's lock.
func (a *app) adopt(ctx context.Context, r *control.Account, s *site.Site, h *local.Host, former string, heir *spec.Node, all []volume.Adoption) error {
	hosts, err := a.Seen(ctx, h)
	if err != nil {
		return err
	}
	ends, err := a.ending(s, hosts, former)
	if err != nil {
		return err
	}
	if err := unused(s, former, all); err != nil {
		return err
	}
	var there *observe.Node
	for i := range hosts[0].Nodes {
		n := &hosts[0].Nodes[i]
		if len(ends) > 0 && n.Name == former {
			continue
		}
		for _, v := range all {
			if n.State != observe.Stopped && len(volume.Users(a.Dirs, s.Key(), []*spec.Node{&n.Node}, v.From, v.To)) > 0 {
				return problem.New(problem.Refused, "node %s runs and uses volume %s; nothing was done", n.Name, v.As).Try("orrery stop %s", n.Name)
			}
		}
		if n.Name == heir.Name && !n.Staged {
			there = n
		}
	}
	if err := a.CarryOut(ctx, r, h, ends); err != nil {
		return err
	}
	if there != nil { // from before it has other data: roles prepare what they find
		if err := h.Engines[there.Engine].Mark(ctx, engine.RefOf(&there.Node), engine.Mark{Config: there.Config, Active: there.Active}); err != nil {
			return err
		}
	}
	for _, v := range all {
		kept, err := v.Adopt()
		if err != nil {
			return problem.New(problem.Failed, "volume %s of %s was not given to %s", v.Volume, former, heir.Name).Because(err)
		}
		fmt.Fprintf(a.out, "%s has the data of %s's volume %s, at %s.\n", heir.Name, former, v.Volume, v.To)
		if kept != "" {
			fmt.Fprintf(a.out, "What it had itself is kept at %s.\n", kept)
		}
	}
	fmt.Fprintf(a.out, "orrery up brings %s up with it.\n", heir.Name)
	return nil
}

// unused wants that a former node, if it is still declared, does not use what is to be another's.
func unused(s *site.Site, former string, all []volume.Adoption) error {
	n, still := s.Node(former)
	if !still {
		return nil
	}
	for _, r := range s.RolesOf(n) {
		for _, use := range r.Volumes {
			if slices.ContainsFunc(all, func(v volume.Adoption) bool { return v.Volume == use.Name }) {
				return problem.New(problem.Refused, "node %s uses volume %s itself; nothing was done", former, use.Name).At("site.toml").
					Try("orrery cp copies data from one node to another")
			}
		}
	}
	return nil
}

// ending gives the steps that end a former node, if it is still there. One that is declared ends only by down.
func (a *app) ending(s *site.Site, hosts []observe.Host, former string) ([]*plan.Step, error) {
	if _, still := s.Node(former); still {
		return nil, nil
	}
	p := plan.Down(s, hosts, plan.Goal{Nodes: map[string]bool{former: true}})
	if p.Empty() {
		return nil, nil
	}
	_, err := a.AskProduction(s, former+" would end.")
	return p.Steps, err
}
