package control

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/apply/filling"
	"orrery/internal/control/fill"
	"orrery/internal/control/hosts"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// CreateTwin makes a twin, fills its volumes and brings it up. What is known of it is written first, so that a run
// that is killed leaves a twin that can be brought up or destroyed.
func (c *Session) CreateTwin(ctx context.Context, of twin.Record) (*site.Site, *apply.Result, error) {
	if err := fill.Possible(of.Volumes); err != nil {
		return nil, nil, err
	}
	b := *c
	b.Twin, b.SiteDir, b.Force = of.Options.Name, of.Dir, true // whoever makes it for somebody else brings it up
	original, _, err := c.Original(of.Dir)
	if err != nil {
		return nil, nil, err
	}
	s, err := twin.Of(original, of.Options) // whatever is wrong is said before anything is written
	if err != nil {
		return nil, nil, err
	}
	if err := b.AllowedOn(s); err != nil {
		return nil, nil, err
	}
	of.Hosts = hosts.Names(s)
	b.Know(of)
	if err := b.Call(original).NewTwin(ctx, s, of); err != nil {
		return nil, nil, err
	}
	if err := c.Note(original, c.Command, "twin "+of.Options.Name); err != nil {
		return nil, nil, err
	}
	if err := b.fillOnce(ctx, s, true); err != nil {
		return nil, nil, err
	}
	r, err := b.up(ctx, s, nil, UpOptions{})
	return s, r, err
}

// fillOnce gives the volumes of a twin what they begin with, before it is up for the first time. Fresh says that the caller has just
// made it, and named the program that fills them.
func (c *Session) fillOnce(ctx context.Context, s *site.Site, fresh bool) error {
	r, known := c.Known[s.Key()]
	if s.Twin == "" || !known {
		return nil
	}
	r.Hosts = hosts.Names(s) // they may be others than when it was made
	if err := c.Call(s).RecordTwin(ctx, r); err != nil {
		return err
	}
	switch {
	case r.Filled || r.Volumes == site.Empty:
		return nil
	case r.Volumes == site.Snapshot:
		of, err := c.Hosts(ctx, s.Original)
		if err != nil {
			return err
		}
		return filling.All(ctx, of, s, func(left string) { c.Outcome(s.Original.Key(), "Not in the twin: %s", left) })
	}
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return err
	}
	if !fresh && !f.Own() {
		return fill.Unfilled(&r)
	}
	letGo, err := c.Hold(ctx, s, f)
	if err != nil {
		return err
	}
	defer letGo()
	if err := fill.By(ctx, f, c.Dirs, s, r, func(left string) { c.Outcome(s.Key(), "Not in the twin: %s", left) }); err != nil {
		return err
	}
	r.Filled = true
	c.Know(r)
	return nil
}
