package fill

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/apply/filling"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Once fills the volumes of a twin before it is up for the first time. Fresh reports whether the
// caller has just created the twin and named the program that fills its volumes.
func Once(ctx context.Context, c *control.Session, s *site.Site, fresh bool) error {
	r, known := c.Known.Twin(s.Key())
	if s.Twin == "" || !known {
		return nil
	}
	r.Hosts = hosts.Names(s) // the site may have other hosts than when the twin was created
	if err := c.Connector(s).RecordTwin(ctx, r); err != nil {
		return err
	}
	switch {
	case r.Filled || r.Volumes == site.CopyEmpty:
		return nil
	case r.Volumes == site.CopySnapshot:
		of, err := c.Hosts(ctx, s.Original)
		if err != nil {
			return err
		}
		return filling.FillTwin(ctx, of, s, func(left string) { c.Outcome(s.Original.Key(), "Not in the twin: %s", left) })
	}
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return err
	}
	untrusted := c.Connector(s).Twins().CheckProgram(&r)
	if !fresh && untrusted != nil {
		return untrusted
	}
	letGo, err := c.LockSite(ctx, s, f)
	if err != nil {
		return err
	}
	defer letGo()
	if err := fillAll(ctx, r.Volumes, f, c.Dirs, s, func(left string) {
		c.Outcome(s.Key(), "Not in the twin: %s", left)
	}); err != nil {
		p := problem.New(problem.Failed, "the volumes of twin %s could not be filled", s.Twin).Because(err)
		if untrusted != nil {
			return p.Try("fix the cause, run orrery twin destroy %s and create the twin again", s.Twin)
		}
		return p.Try("fix the cause and continue with orrery --twin %s up; orrery twin destroy %[1]s destroys it", s.Twin)
	}
	r.Filled = true
	if err := f.ForEach(func(_ int, h *apply.HostClient) error { return h.Twins.Save(ctx, r) }); err != nil {
		return err
	}
	c.Known.Add(r)
	return nil
}
