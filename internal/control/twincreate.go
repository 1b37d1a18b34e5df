package control

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/control/fill"
	"orrery/internal/control/hosts"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// CreateTwin makes a twin, fills its volumes and brings it up. What is known of it is written first, so that a run
// that is killed leaves a twin that can be brought up or destroyed.
func CreateTwin(ctx context.Context, c *Session, of twin.Record) (*site.Site, *apply.Result, error) {
	if err := fill.Possible(of.Volumes); err != nil {
		return nil, nil, err
	}
	b := *c
	b.Twin, b.SiteDir, b.Force = of.Options.Name, of.Dir, true // whoever makes it for somebody else brings it up
	original, _, err := Original(c, of.Dir)
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
	if err := fillOnce(ctx, &b, s, true); err != nil {
		return nil, nil, err
	}
	r, err := up(ctx, &b, s, nil, UpOptions{})
	return s, r, err
}
