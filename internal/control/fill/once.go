package fill

import (
	"context"
	"orrery/internal/apply/filling"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/site"
)

// Once fills the volumes of a twin before it is up for the first time. Fresh says that the caller has just
// made the twin, and named the program that fills them.
func Once(ctx context.Context, c *control.Session, s *site.Site, fresh bool) error {
	r, known := c.Known.Twin(s.Key())
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
		return Unfilled(&r)
	}
	letGo, err := c.Hold(ctx, s, f)
	if err != nil {
		return err
	}
	defer letGo()
	if err := By(ctx, f, c.Dirs, s, r, func(left string) { c.Outcome(s.Key(), "Not in the twin: %s", left) }); err != nil {
		return err
	}
	r.Filled = true
	c.Known.Add(r)
	return nil
}
