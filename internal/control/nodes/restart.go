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

// Restart starts existing nodes again without changing them. Running nodes are ended first, in the
// way that the session says. It returns nil if no node exists.
func Restart(ctx context.Context, c *control.Session, s *site.Site, selectors []string) (*apply.Result, error) {
	f, chosen, err := control.SelectedHosts(ctx, c, s, selectors)
	if err != nil {
		return nil, err
	}
	j := &control.Job{Session: c, Site: s, Base: s, Hosts: f, Do: restartOp{site: s, nodes: chosen, ending: c.Ending}}
	return j.Run(ctx)
}

// A restartOp starts nodes of a site again.
type restartOp struct {
	control.Plain
	site   *site.Site
	nodes  map[string]bool // nil for all nodes
	ending plan.StopMode
}

func (r restartOp) Plan(_ context.Context, seen []observe.Host) (*plan.Plan, error) {
	return plan.Restart(r.site, seen, plan.Goal{Nodes: r.nodes, Ending: r.ending})
}

func (r restartOp) Confirm(c *control.Session, p *plan.Plan) (bool, error) {
	n := p.Counts()[r.ending.Kind()]
	if n == 0 {
		return false, nil
	}
	return c.AskProduction(r.site, fmt.Sprintf("%s would restart.", humanize.Plural(n, "node")))
}
