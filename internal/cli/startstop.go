package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
)

type planner func(*site.Site, []observe.Host, plan.Goal) *plan.Plan

func (a *app) startVerb() *cobra.Command {
	return a.stateVerb("start", "Start nodes that are there, as they are", "running", plan.Start, func(*site.Site, *plan.Plan, consent) error { return nil })
}

func (a *app) stopVerb() *cobra.Command {
	return a.stateVerb("stop", "Shut nodes down and keep all that is theirs", "stopped", plan.Stop, func(s *site.Site, p *plan.Plan, k consent) error {
		return a.askProduction(s, fmt.Sprintf("%s would stop.", count(len(p.Steps), "node")), k)
	})
}

func (a *app) stateVerb(name, short, state string, make planner, ask func(*site.Site, *plan.Plan, consent) error) *cobra.Command {
	var k consent
	c := &cobra.Command{
		Use:   name + " [SELECTOR...]",
		Short: short,
		RunE: func(c *cobra.Command, args []string) error {
			s, h, chosen, err := a.target(args)
			if err != nil {
				return err
			}
			j := &job{app: a, site: s, base: s, host: h, parallel: defaultParallel(),
				plan: func(hosts []observe.Host) (*plan.Plan, error) {
					return make(s, hosts, plan.Goal{Nodes: chosen}), nil
				},
				ask: func(p *plan.Plan) error { return ask(s, p, k) },
			}
			result, err := j.run(c.Context())
			if err == nil && result == nil {
				fmt.Fprintf(a.out, "%s: all of them are %s.\n", s.Name, state)
			}
			return err
		},
	}
	k.flags(c)
	return c
}
