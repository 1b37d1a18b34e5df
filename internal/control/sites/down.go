package sites

import (
	"context"
	"fmt"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/control/releases"
	"orrery/internal/control/unattended"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// Down destroys the selected nodes or, without selectors, everything of a site except volumes. With
// volumes it deletes those, too. It returns nil if there was nothing to do.
func Down(ctx context.Context, c *control.Session, s *site.Site, selectors []string, volumes bool) (*apply.Result,
	error) {
	chosen, err := control.SelectNodes(s, selectors)
	if err != nil {
		return nil, err
	}
	f, err := hostsForDown(ctx, c, s)
	if err != nil {
		return nil, err
	}
	return down(ctx, c, s, f, chosen, volumes)
}

// hostsForDown returns the hosts of a site from which something is taken down.
func hostsForDown(ctx context.Context, c *control.Session, s *site.Site) (*apply.Fleet, error) {
	f, silent, err := c.Connector(s).ConnectForTeardown(ctx)
	if err == nil {
		err = silent
	}
	return f, err
}

// DownNamed takes down a site whose directory may no longer exist. It finds out from the host what
// the site consists of.
func DownNamed(ctx context.Context, c *control.Session, name string, volumes bool) (*apply.Result, error) {
	if err := c.Allowed(); err != nil {
		return nil, err
	}
	s, err := siteByName(c, name)
	if err != nil {
		return nil, err
	}
	f, err := c.HostsWithoutReleases(ctx, s)
	if err != nil {
		return nil, err
	}
	return down(ctx, c.WithoutOverdue(), s, f, nil, volumes)
}

// down destroys the chosen nodes, or everything of a site if chosen is nil.
func down(ctx context.Context, c *control.Session, s *site.Site, f *apply.Fleet, chosen map[string]bool,
	volumes bool) (*apply.Result, error) {
	j := &control.Job{Session: c, Site: s, Hosts: f,
		Do: &downOp{site: s, nodes: chosen, volumes: volumes, ending: c.Ending}}
	result, err := j.Run(ctx)
	if err != nil || chosen != nil {
		return result, err
	}
	if len(f.Unknown) > 0 {
		return result, nil // the record stays, because an unknown host may still have nodes
	}
	if err := releases.ClearSwitches(ctx, f); err != nil {
		return result, err
	}
	if hosts.IncludesLocal(s) {
		c.Register().MarkDown(s.Key())
	}
	if err := unattended.SaveMirrorPlans(ctx, c.Connector(s), f, nil); err != nil {
		return result, err
	}
	if err := unattended.SaveRoutinePlans(ctx, c.Connector(s), f, true); err != nil {
		return result, err
	}
	return result, apply.DropRestores(ctx, f)
}

// A downOp destroys nodes of a site.
type downOp struct {
	control.Plain
	site    *site.Site
	nodes   map[string]bool // nil for all nodes
	volumes bool            // delete the volumes, too
	ending  plan.StopMode
}

func (d *downOp) Plan(_ context.Context, seen []observe.Host) (*plan.Plan, error) {
	return release.Down(d.site, seen, plan.Goal{Nodes: d.nodes, Volumes: d.volumes, Ending: d.ending})
}

func (d *downOp) Confirm(c *control.Session, p *plan.Plan) (asked bool, err error) {
	if n := p.Counts()[plan.RemoveVolume]; d.volumes && n > 0 {
		why := fmt.Sprintf("The data of %s of %s would be deleted permanently.", humanize.Plural(n, "volume"), d.site.Name)
		q := control.Question{About: control.Volumes, Site: d.site.Name, Why: why, Plain: !d.site.Production}
		if asked, err = c.Confirmer.Ask(q); err != nil {
			return asked, err
		}
	}
	more, err := c.AskProduction(d.site, fmt.Sprintf("%s would be destroyed.",
		humanize.Plural(p.Counts()[plan.DestroyNode], "node")))
	return asked || more, err
}
