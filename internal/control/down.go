package control

import (
	"context"
	"fmt"

	"orrery/internal/apply"
	"orrery/internal/control/hosts"
	"orrery/internal/control/unattended"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/site"
)

// Down ends the nodes that selectors mean or, without, all that there is of a site but volumes, and these too if that is said. The
// result is nil if there was nothing to do.
func (c *Session) Down(ctx context.Context, s *site.Site, selectors []string, volumes bool) (*apply.Result, error) {
	chosen, err := Choose(s, selectors)
	if err != nil {
		return nil, err
	}
	f, err := c.leaving(ctx, s)
	if err != nil {
		return nil, err
	}
	return c.down(ctx, s, f, chosen, volumes)
}

// leaving gives the hosts of a site from which something is taken down.
func (c *Session) leaving(ctx context.Context, s *site.Site) (*apply.Fleet, error) {
	f, silent, err := c.Call(s).Leaving(ctx)
	if err == nil {
		err = silent
	}
	return f, err
}

// DownNamed takes down a site of which no directory need be there any more: what is on the host tells what there is of it.
func (c *Session) DownNamed(ctx context.Context, name string, volumes bool) (*apply.Result, error) {
	if err := c.Allowed(); err != nil {
		return nil, err
	}
	s, err := c.siteByName(name)
	if err != nil {
		return nil, err
	}
	f, err := c.Bare(ctx, s)
	if err != nil {
		return nil, err
	}
	return c.atWork().down(ctx, s, f, nil, volumes)
}

// down ends nodes; those that are chosen or, if that is nil, all that there is of a site.
func (c *Session) down(ctx context.Context, s *site.Site, f *apply.Fleet, chosen map[string]bool, volumes bool) (*apply.Result, error) {
	j := &Job{Session: c, Site: s, Hosts: f,
		Plan: func(hosts []observe.Host) (*plan.Plan, error) {
			return release.Down(s, hosts, plan.Goal{Nodes: chosen, Volumes: volumes, Ending: c.Ending}), nil
		},
		Ask: func(c *Session, p *plan.Plan) (bool, error) { return c.askDown(s, p, volumes) },
	}
	result, err := j.Run(ctx)
	if err != nil || chosen != nil {
		return result, err
	}
	if len(f.Unknown) > 0 {
		return result, nil // what there may be of it keeps its record
	}
	if err := forgetLive(ctx, f); err != nil {
		return result, err
	}
	if hosts.Near(s) {
		c.Unmark(s.Key())
	}
	if err := unattended.SaveMirrorPlans(ctx, c.Call(s), f, nil); err != nil {
		return result, err
	}
	return result, f.DropRestores(ctx)
}

func (c *Session) askDown(s *site.Site, p *plan.Plan, volumes bool) (asked bool, err error) {
	if n := p.Counts()[plan.RemoveVolume]; volumes && n > 0 {
		why := fmt.Sprintf("The data of %s of %s would be deleted permanently.", phrase.Count(n, "volume"), s.Name)
		if asked, err = c.Asker.Ask(Question{About: Volumes, Site: s.Name, Why: why}); err != nil {
			return asked, err
		}
	}
	more, err := c.AskProduction(s, fmt.Sprintf("%s would end.", phrase.Count(p.Counts()[plan.DestroyNode], "node")))
	return asked || more, err
}

// Start starts nodes that are there, as they are. The result is nil if all of them run.
func (c *Session) Start(ctx context.Context, s *site.Site, selectors []string) (*apply.Result, error) {
	return c.setState(ctx, s, selectors, plan.Start, func(*Session, *plan.Plan) (bool, error) { return false, nil })
}

// Stop shuts nodes down and keeps all that is theirs. The result is nil if none of them runs.
func (c *Session) Stop(ctx context.Context, s *site.Site, selectors []string) (*apply.Result, error) {
	stop := func(s *site.Site, hosts []observe.Host, goal plan.Goal) (*plan.Plan, error) {
		return plan.Stop(s, hosts, goal), nil
	}
	return c.setState(ctx, s, selectors, stop, func(c *Session, p *plan.Plan) (bool, error) {
		return c.AskProduction(s, fmt.Sprintf("%s would stop.", phrase.Count(len(p.Steps), "node")))
	})
}

// Renew lets virtual machines go on in the programs that their host has now, without booting: those that selectors mean or, without, all whose programs were replaced. The result is nil if
// there are none.
func (c *Session) Renew(ctx context.Context, s *site.Site, selectors []string) (*apply.Result, error) {
	return c.setState(ctx, s, selectors, plan.Renew, func(c *Session, p *plan.Plan) (bool, error) {
		return c.AskProduction(s, fmt.Sprintf("%s would go on in another QEMU.", phrase.Count(len(p.Steps), "node")))
	})
}

type planner func(*site.Site, []observe.Host, plan.Goal) (*plan.Plan, error)

func (c *Session) setState(ctx context.Context, s *site.Site, selectors []string, make planner, ask func(*Session, *plan.Plan) (bool, error)) (*apply.Result, error) {
	f, chosen, err := c.ChosenHosts(ctx, s, selectors)
	if err != nil {
		return nil, err
	}
	j := &Job{Session: c, Site: s, Base: s, Hosts: f, Ask: ask, Plan: func(hosts []observe.Host) (*plan.Plan, error) {
		return make(s, hosts, plan.Goal{Nodes: chosen, Ending: c.Ending})
	}}
	return j.Run(ctx)
}
