package sites

import (
	"context"
	"fmt"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/control/releases"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/site"
)

// Down ends the nodes that selectors mean or, without, all that there is of a site but volumes, and these too if that is said. The
// result is nil if there was nothing to do.
func Down(ctx context.Context, c *control.Session, s *site.Site, selectors []string, volumes bool) (*apply.Result, error) {
	chosen, err := control.Choose(s, selectors)
	if err != nil {
		return nil, err
	}
	f, err := leaving(ctx, c, s)
	if err != nil {
		return nil, err
	}
	return down(ctx, c, s, f, chosen, volumes)
}

// leaving gives the hosts of a site from which something is taken down.
func leaving(ctx context.Context, c *control.Session, s *site.Site) (*apply.Fleet, error) {
	f, silent, err := c.Call(s).Leaving(ctx)
	if err == nil {
		err = silent
	}
	return f, err
}

// DownNamed takes down a site of which no directory need be there any more: what is on the host tells what there is of it.
func DownNamed(ctx context.Context, c *control.Session, name string, volumes bool) (*apply.Result, error) {
	if err := c.Allowed(); err != nil {
		return nil, err
	}
	s, err := siteByName(c, name)
	if err != nil {
		return nil, err
	}
	f, err := c.Bare(ctx, s)
	if err != nil {
		return nil, err
	}
	return down(ctx, c.WithoutOverdue(), s, f, nil, volumes)
}

// down ends nodes; those that are chosen or, if that is nil, all that there is of a site.
func down(ctx context.Context, c *control.Session, s *site.Site, f *apply.Fleet, chosen map[string]bool, volumes bool) (*apply.Result, error) {
	j := &control.Job{Session: c, Site: s, Hosts: f,
		Plan: func(hosts []observe.Host) (*plan.Plan, error) {
			return release.Down(s, hosts, plan.Goal{Nodes: chosen, Volumes: volumes, Ending: c.Ending}), nil
		},
		Ask: func(c *control.Session, p *plan.Plan) (bool, error) { return askDown(c, s, p, volumes) },
	}
	result, err := j.Run(ctx)
	if err != nil || chosen != nil {
		return result, err
	}
	if len(f.Unknown) > 0 {
		return result, nil // what there may be of it keeps its record
	}
	if err := releases.ForgetLive(ctx, c, s, f); err != nil {
		return result, err
	}
	if hosts.Near(s) {
		c.Unmark(s.Key())
	}
	if err := c.Call(s).KeepMirrors(ctx, f, nil); err != nil {
		return result, err
	}
	return result, f.DropRestores(ctx)
}

func askDown(c *control.Session, s *site.Site, p *plan.Plan, volumes bool) (asked bool, err error) {
	if n := p.Counts()[plan.RemoveVolume]; volumes && n > 0 {
		why := fmt.Sprintf("The data of %s of %s would be deleted permanently.", phrase.Count(n, "volume"), s.Name)
		if asked, err = c.Asker.Ask(control.Question{About: control.Volumes, Site: s.Name, Why: why}); err != nil {
			return asked, err
		}
	}
	more, err := c.AskProduction(s, fmt.Sprintf("%s would end.", phrase.Count(p.Counts()[plan.DestroyNode], "node")))
	return asked || more, err
}

// Start starts nodes that are there, as they are. The result is nil if all of them run.
func Start(ctx context.Context, c *control.Session, s *site.Site, selectors []string) (*apply.Result, error) {
	return setState(ctx, c, s, selectors, plan.Start, func(*control.Session, *plan.Plan) (bool, error) { return false, nil })
}

// Stop shuts nodes down and keeps all that is theirs. The result is nil if none of them runs.
func Stop(ctx context.Context, c *control.Session, s *site.Site, selectors []string) (*apply.Result, error) {
	stop := func(s *site.Site, hosts []observe.Host, goal plan.Goal) (*plan.Plan, error) {
		return plan.Stop(s, hosts, goal), nil
	}
	return setState(ctx, c, s, selectors, stop, func(c *control.Session, p *plan.Plan) (bool, error) {
		return c.AskProduction(s, fmt.Sprintf("%s would stop.", phrase.Count(len(p.Steps), "node")))
	})
}

// Renew lets virtual machines go on in the programs that their host has now, without booting: those that selectors mean or, without, all whose programs were replaced. The result is nil if
// there are none.
func Renew(ctx context.Context, c *control.Session, s *site.Site, selectors []string) (*apply.Result, error) {
	return setState(ctx, c, s, selectors, plan.Renew, func(c *control.Session, p *plan.Plan) (bool, error) {
		return c.AskProduction(s, fmt.Sprintf("%s would go on in another QEMU.", phrase.Count(len(p.Steps), "node")))
	})
}

type planner func(*site.Site, []observe.Host, plan.Goal) (*plan.Plan, error)

func setState(ctx context.Context, c *control.Session, s *site.Site, selectors []string, make planner, ask func(*control.Session, *plan.Plan) (bool, error)) (*apply.Result, error) {
	f, chosen, err := c.ChosenHosts(ctx, s, selectors)
	if err != nil {
		return nil, err
	}
	j := &control.Job{Session: c, Site: s, Base: s, Hosts: f, Ask: ask, Plan: func(hosts []observe.Host) (*plan.Plan, error) {
		return make(s, hosts, plan.Goal{Nodes: chosen, Ending: c.Ending})
	}}
	return j.Run(ctx)
}
