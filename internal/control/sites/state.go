package sites

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

// Start starts existing nodes without changing them. It returns nil if all of them run.
func Start(ctx context.Context, c *control.Session, s *site.Site, selectors []string) (*apply.Result, error) {
	return setState(ctx, c, s, selectors, plan.Start, "")
}

// Stop shuts nodes down and keeps all their data. It returns nil if none of them runs.
func Stop(ctx context.Context, c *control.Session, s *site.Site, selectors []string) (*apply.Result, error) {
	stop := func(s *site.Site, seen []observe.Host, goal plan.Goal) (*plan.Plan, error) {
		return plan.Stop(s, seen, goal), nil
	}
	return setState(ctx, c, s, selectors, stop, "would stop")
}

// Renew moves virtual machines to the installed version of QEMU, without rebooting them. It renews
// the selected ones or, without selectors, all whose programs were replaced on their host. It
// returns nil if there are none.
func Renew(ctx context.Context, c *control.Session, s *site.Site, selectors []string) (*apply.Result, error) {
	return setState(ctx, c, s, selectors, plan.Renew, "would continue in another QEMU")
}

type planner func(*site.Site, []observe.Host, plan.Goal) (*plan.Plan, error)

func setState(ctx context.Context, c *control.Session, s *site.Site, selectors []string, planned planner,
	would string) (*apply.Result, error) {
	f, chosen, err := control.SelectedHosts(ctx, c, s, selectors)
	if err != nil {
		return nil, err
	}
	do := &stateOp{site: s, goal: plan.Goal{Nodes: chosen, Ending: c.Ending}, planned: planned, would: would}
	j := &control.Job{Session: c, Site: s, Base: s, Hosts: f, Do: do}
	return j.Run(ctx)
}

// A stateOp starts, stops or renews existing nodes.
type stateOp struct {
	control.Plain
	site    *site.Site
	goal    plan.Goal
	planned planner
	would   string // what is asked about the nodes in production, or "" to ask nothing
}

func (t *stateOp) Plan(_ context.Context, seen []observe.Host) (*plan.Plan, error) {
	return t.planned(t.site, seen, t.goal)
}

func (t *stateOp) Confirm(c *control.Session, p *plan.Plan) (asked bool, err error) {
	if t.would == "" {
		return false, nil
	}
	return c.AskProduction(t.site, fmt.Sprintf("%s %s.", humanize.Plural(len(p.Steps), "node"), t.would))
}
