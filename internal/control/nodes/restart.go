package nodes

import (
	"context"
	"fmt"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// Restart lets nodes that are there start anew, as they are; those that run end first, as the
// session says. The result is nil if none is there.
func Restart(ctx context.Context, c *control.Session, s *site.Site, selectors []string) (*apply.Result, error) {
	f, chosen, err := control.ChosenHosts(ctx, c, s, selectors)
	if err != nil {
		return nil, err
	}
	j := &control.Job{Session: c, Site: s, Base: s, Hosts: f, Do: restarting{site: s, nodes: chosen, ending: c.Ending}}
	return j.Run(ctx)
}

// A restarting lets nodes of a site start anew.
type restarting struct {
	control.Plain
	site   *site.Site
	nodes  map[string]bool // nil: all
	ending plan.Ending
}

func (r restarting) Plan(_ context.Context, seen []observe.Host) (*plan.Plan, error) {
	return plan.Restart(r.site, seen, plan.Goal{Nodes: r.nodes, Ending: r.ending})
}

func (r restarting) Confirm(c *control.Session, p *plan.Plan) (bool, error) {
	n := p.Counts()[r.ending.Kind()]
	if n == 0 {
		return false, nil
	}
	return c.AskProduction(r.site, fmt.Sprintf("%s would restart.", humanize.Count(n, "node")))
}
