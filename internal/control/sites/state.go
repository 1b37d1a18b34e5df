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

// Start starts nodes that are there, as they are. The result is nil if all of them run.
func Start(ctx context.Context, c *control.Session, s *site.Site, selectors []string) (*apply.Result, error) {
	return setState(ctx, c, s, selectors, plan.Start, "")
}

// Stop shuts nodes down and keeps all that is theirs. The result is nil if none of them runs.
func Stop(ctx context.Context, c *control.Session, s *site.Site, selectors []string) (*apply.Result, error) {
	stop := func(s *site.Site, seen []observe.Host, goal plan.Goal) (*plan.Plan, error) {
		return plan.Stop(s, seen, goal), nil
	}
	return setState(ctx, c, s, selectors, stop, "would stop")
}

// Renew lets virtual machines go on in the programs that their host has now, without booting: those
// that selectors mean or, without, all whose programs were replaced. The result is nil if there are
// none.
func Renew(ctx context.Context, c *control.Session, s *site.Site, selectors []string) (*apply.Result, error) {
	return setState(ctx, c, s, selectors, plan.Renew, "would go on in another QEMU")
}

type planner func(*site.Site, []observe.Host, plan.Goal) (*plan.Plan, error)

func setState(ctx context.Context, c *control.Session, s *site.Site, selectors []string, planned planner,
	would string) (*apply.Result, error) {
	f, chosen, err := control.ChosenHosts(ctx, c, s, selectors)
	if err != nil {
		return nil, err
	}
	do := &settingState{site: s, goal: plan.Goal{Nodes: chosen, Ending: c.Ending}, planned: planned, would: would}
	j := &control.Job{Session: c, Site: s, Base: s, Hosts: f, Do: do}
	return j.Run(ctx)
}

// A settingState starts or stops nodes as they are.
type settingState struct {
	control.Plain
	site    *site.Site
	goal    plan.Goal
	planned planner
	would   string // what production is asked about the nodes; "": nothing
}

func (t *settingState) Plan(_ context.Context, seen []observe.Host) (*plan.Plan, error) {
	return t.planned(t.site, seen, t.goal)
}

func (t *settingState) Confirm(c *control.Session, p *plan.Plan) (asked bool, err error) {
	if t.would == "" {
		return false, nil
	}
	return c.AskProduction(t.site, fmt.Sprintf("%s %s.", humanize.Count(len(p.Steps), "node"), t.would))
}
