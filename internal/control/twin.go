package control

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// EndTwin ends a twin. Its site file need not be readable any more: what is on the host tells what there is.
func (c *Session) EndTwin(ctx context.Context, r twin.Record) error {
	s := &site.Site{Name: r.Site, Twin: r.Options.Name}
	f, err := c.Bare(ctx, s)
	if err != nil {
		return err
	}
	j := &Job{Session: c, Site: s, Hosts: f, Plan: func(hosts []observe.Host) (*plan.Plan, error) {
		return plan.Down(s, hosts, plan.Goal{Volumes: true, Ending: c.Ending}), nil
	}}
	if _, err := j.Run(ctx); err != nil {
		return err
	}
	if err := c.machine().Cancel(apply.JobName(r.Key(), apply.AtExpiry)); err != nil {
		return err
	}
	if err := c.Note(&site.Site{Name: r.Site}, c.Command, "twin "+r.Options.Name+" ended"); err != nil {
		return err
	}
	// Last, because it is what shows that there is something to destroy.
	if err := c.Dirs.RemoveSite(r.Key()); err != nil {
		return err
	}
	c.Outcome(r.Key(), "Twin %s of %s is gone", r.Options.Name, r.Site)
	return nil
}
