package control

import (
	"context"
	"errors"
	"io/fs"

	"orrery/internal/apply"
	"orrery/internal/control/register"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/tree"
)

// CountNodes tells how many nodes of a site there are, and how many of them run.
func (c *Session) CountNodes(ctx context.Context, s *site.Site) (all, running int) {
	h, err := c.Bare(s)
	if err != nil {
		return 0, 0
	}
	nodes, _ := h.Nodes(ctx) // what cannot be told is not counted
	for i := range nodes {
		if nodes[i].State == observe.Running {
			running++
		}
	}
	return len(nodes), running
}

// twinMeant gives the key of the twin that is meant: of the site of -C or of here, else of the only site with a twin of that name.
func (c *Session) twinMeant() (string, error) {
	if here, err := c.Absolute(); err == nil {
		for _, r := range c.Twins() {
			if r.Options.Name == c.Twin && r.Dir == here {
				return r.Key(), nil
			}
		}
	}
	r, err := c.onlyTwin()
	if err != nil {
		return "", err
	}
	return r.Key(), nil
}

// DestroyTwin ends the twin of a name, with its data and all that is known of it.
func (c *Session) DestroyTwin(ctx context.Context, name string) error {
	if err := c.Allowed(); err != nil {
		return err
	}
	b := c.atWork()
	b.Twin = name
	key, err := b.twinMeant()
	if err != nil {
		return err
	}
	r, err := c.ReadTwin(key)
	if errors.Is(err, fs.ErrNotExist) { // its time was over just now
		return c.NoTwin("", name)
	}
	if err != nil {
		return err
	}
	return b.EndTwin(ctx, r)
}

// EndTwin ends a twin. Its site file need not be readable any more: what is on the host tells what there is.
func (c *Session) EndTwin(ctx context.Context, r register.TwinRecord) error {
	s := &site.Site{Name: r.Site, Twin: r.Options.Name}
	h, err := c.Bare(s)
	if err != nil {
		return err
	}
	j := &Job{Session: c, Site: s, Hosts: apply.Alone(h), Plan: func(hosts []observe.Host) (*plan.Plan, error) {
		return plan.Down(s, hosts, plan.Goal{Volumes: true}), nil
	}}
	if _, err := j.Run(ctx); err != nil {
		return err
	}
	if err := c.machine().Cancel(expiryName(r.Key())); err != nil {
		return err
	}
	if err := c.Note(&site.Site{Name: r.Site}, c.Command, "twin "+r.Options.Name+" ended"); err != nil {
		return err
	}
	// Last, because it is what shows that there is something to destroy.
	if err := tree.RemoveAll(c.Dirs.Site(r.Key())); err != nil {
		return err
	}
	c.outcome(r.Key(), "Twin %s of %s is gone", r.Options.Name, r.Site)
	return nil
}

func expiryName(key string) string { return "expiry-" + key }
