package control

import (
	"context"
	"time"

	"orrery/internal/apply"
	"orrery/internal/apply/filling"
	"orrery/internal/control/fill"
	"orrery/internal/control/hosts"
	"orrery/internal/host/later"
	"orrery/internal/host/twins"
	"orrery/internal/problem"
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
	if err := b.record(ctx, original, s, of); err != nil {
		return nil, nil, err
	}
	if err := c.Note(original, c.Command, "twin "+of.Options.Name); err != nil {
		return nil, nil, err
	}
	if hosts.Far(s) && fill.Program(of.Volumes) {
		if err := b.fillFar(ctx, s, of); err != nil {
			return nil, nil, err
		}
	}
	r, err := b.up(ctx, s, nil, UpOptions{})
	return s, r, err
}

// record takes down that there is a twin, on all of its hosts.
func (c *Session) record(ctx context.Context, original, s *site.Site, of twin.Record) error {
	if hosts.Far(s) {
		if err := c.AllowedOn(s); err != nil {
			return err
		}
		of.Hosts = hosts.Names(s)
		c.Know(of)
		return c.Call(original).NewTwin(ctx, s, of)
	}
	if was, err := c.ReadTwin(of.Key()); err == nil {
		return problem.New(problem.Mistake, "site %s already has a twin %s, which belongs to %s", of.Site, was.Options.Name, was.Options.Owner).
			Try("orrery --twin %s up brings it up; orrery twin destroy %[1]s ends it", was.Options.Name)
	}
	if err := c.WriteTwin(of); err != nil || of.Expires.IsZero() {
		return err
	}
	return c.expire(ctx, of)
}

// expire lets a twin be destroyed when its time is over.
func (c *Session) expire(ctx context.Context, r twin.Record) error {
	if len(r.Hosts) > 0 {
		return c.machine().Later(ctx, twins.Expiry(&r))
	}
	return c.machine().Later(ctx, later.Call{
		Name: twins.ExpiryName(r.Key()), After: time.Until(r.Expires), Args: []string{"--force", "-C", r.Dir, "twin", "destroy", r.Options.Name, "--wait"},
	})
}

// fillFar lets the program that the caller has named fill the volumes of a twin on its hosts.
func (c *Session) fillFar(ctx context.Context, s *site.Site, of twin.Record) error {
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return err
	}
	letGo, err := c.Hold(ctx, s, f)
	if err != nil {
		return err
	}
	defer letGo()
	of.Hosts = hosts.Names(s)
	if err := fill.Far(ctx, f, s, of, func(left string) { c.Outcome(s.Key(), "Not in the twin: %s", left) }); err != nil {
		return err
	}
	of.Filled = true
	c.Know(of)
	return nil
}

// fillOnce gives the volumes of a twin what they begin with, before it is up for the first time.
func (c *Session) fillOnce(ctx context.Context, s *site.Site) error {
	if s.Twin == "" {
		return nil
	}
	_, known := c.Far[s.Key()]
	if !known && hosts.Far(s) {
		return nil
	}
	r, err := c.ReadTwin(s.Key())
	if err != nil {
		return err
	}
	if known { // its hosts may be others than when it was made
		r.Hosts = hosts.Names(s)
		if err := c.Call(s).RecordTwin(ctx, r); err != nil {
			return err
		}
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
	case known:
		return fill.Unfilled(&r)
	}
	if err := fill.By(ctx, r.Volumes, c.Dirs, s); err != nil {
		return err
	}
	r.Filled = true
	return c.WriteTwin(r)
}
