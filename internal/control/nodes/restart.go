package nodes

import (
	"context"
	"fmt"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/plan"
	"orrery/internal/site"
)

// Restart lets nodes that are there start anew, as they are; those that run end first, as the session says. The result is nil
// if none is there.
func Restart(ctx context.Context, c *control.Session, s *site.Site, selectors []string) (*apply.Result, error) {
	f, chosen, err := c.ChosenHosts(ctx, s, selectors)
	if err != nil {
		return nil, err
	}
	j := &control.Job{Session: c, Site: s, Base: s, Hosts: f, Plan: func(hosts []observe.Host) (*plan.Plan, error) {
		return plan.Restart(s, hosts, plan.Goal{Nodes: chosen, Ending: c.Ending})
	}}
	j.Ask = func(c *control.Session, p *plan.Plan) (bool, error) {
		n := p.Counts()[c.Ending.Kind()]
		if n == 0 {
			return false, nil
		}
		return c.AskProduction(s, fmt.Sprintf("%s would restart.", phrase.Count(n, "node")))
	}
	return j.Run(ctx)
}
