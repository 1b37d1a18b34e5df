// Package twins creates, lists and destroys twins, on all hosts of a site.
package twins

import (
	"context"
	"errors"
	"io/fs"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/control/sites"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/text/humanize"
)

// twinSession returns a session for a twin that does not check for overdue work.
func twinSession(c *control.Session, name string) *control.Session {
	b := *c
	b.Overdue, b.Twin = nil, name
	return &b
}

// twinKey returns the key of the session's twin. It prefers a twin of the site of -C or of the
// current directory, and otherwise takes the only twin of that name.
func twinKey(c *control.Session) (string, error) {
	if here, err := c.AbsDirectory(); err == nil {
		for _, r := range c.Register().Twins() {
			if r.Options.Name == c.Twin && r.Dir == here {
				return r.Key(), nil
			}
		}
	}
	r, err := control.OnlyTwin(c)
	if err != nil {
		return "", err
	}
	return r.Key(), nil
}

// Destroy destroys the twin called name, with its data and its records.
func Destroy(ctx context.Context, c *control.Session, name string) error {
	b := twinSession(c, name)
	original, err := siteOfTwin(ctx, b, name)
	switch {
	case err != nil:
		return err
	case original != nil:
		if err := destroyOnHosts(ctx, b, original, name); err != nil {
			return err
		}
		b.Connector(original).Lock().RemoveTwin(name)
		return nil
	}
	if err := c.Allowed(); err != nil {
		return err
	}
	key, err := twinKey(b)
	if err != nil {
		return err
	}
	r, err := c.Register().ReadTwin(key)
	if errors.Is(err, fs.ErrNotExist) { // the twin has just expired
		return c.Register().NoTwinError("", name)
	}
	if err != nil {
		return err
	}
	if len(r.Hosts) > 1 {
		return problem.New(problem.Mistake, "twin %s is on hosts %s", name, humanize.List(r.Hosts, 12)).
			Try("run it with -C and the directory of the site, which declares them; orrery twin destroy %s --here destroys the part on this machine",
				key)
	}
	return destroyOnHosts(ctx, b, &site.Site{Name: r.Site}, r.Options.Name)
}

// siteOfTwin returns the session's site if it has a twin called name. It returns nil if the site cannot be
// read or has no such twin, so that the records on this machine decide.
func siteOfTwin(ctx context.Context, c *control.Session, name string) (*site.Site, error) {
	dir, err := c.Directory()
	if err != nil {
		return nil, nil //nolint:nilerr // the records on this machine decide
	}
	s, err := sitefile.Load(dir)
	if err != nil {
		return nil, nil //nolint:nilerr // likewise
	}
	t, err := c.Connector(s).Twins().Find(ctx, name)
	if err == nil {
		c.Known.Add(t.Record) // to learn its owner
	}
	if problem.Is(err, problem.Mistake) {
		if _, wrong := control.OnlyTwin(c); wrong == nil { // a twin of another site
			return nil, nil
		}
	}
	if problem.Is(err, problem.Surprise) { // the twin is destroyed, even if hosts have different records of it
		err = nil
	}
	return s, err
}

// destroyOnHosts destroys a twin on all of its hosts.
func destroyOnHosts(ctx context.Context, c *control.Session, original *site.Site, name string) error {
	s, f, err := c.Connector(original).Twins().Hosts(ctx, name)
	if err != nil {
		return err
	}
	j := &control.Job{Session: c, Site: s, Hosts: f, Do: control.Steps(func(hosts []observe.Host) (*plan.Plan, error) {
		return plan.Down(s, hosts, plan.Goal{Volumes: true, Ending: c.Ending}), nil
	})}
	if _, err := j.Run(ctx); err != nil {
		return err
	}
	if err := f.ForEach(func(_ int, h *apply.HostClient) error { return h.Twins.Forget(ctx) }); err != nil {
		return err
	}
	c.Known.Remove(s.Key())
	c.Outcome(s.Key(), "Twin %s of %s is gone", name, original.Name)
	return c.Note(original, c.Command, "twin "+name+" ended")
}

// DestroyLocal destroys this machine's part of the twin with a key. Each of several hosts destroys its
// own part when the time is over.
func DestroyLocal(ctx context.Context, c *control.Session, key string) error {
	if err := c.Allowed(); err != nil {
		return err
	}
	r, err := c.Register().ReadTwin(key)
	if errors.Is(err, fs.ErrNotExist) || err == nil && r.Key() != key {
		return problem.New(problem.Mistake, "no part of a twin %q is on this machine", key).
			Try("orrery twin ls lists the twins of this machine; name one as SITE.TWIN")
	}
	if err != nil {
		return err
	}
	return destroyOnHosts(ctx, twinSession(c, r.Options.Name), &site.Site{Name: r.Site}, r.Options.Name)
}

// List returns the twins that are partly on this machine, and those on the hosts of the session's
// site. Silent is the error of hosts that do not answer.
func List(ctx context.Context, c *control.Session) (all []*hosts.Twin, silent, err error) {
	all = []*hosts.Twin{}
	name := ""
	if dir, err := c.Directory(); err == nil {
		if s, err := sitefile.Load(dir); err == nil {
			name = s.Name
			call := c.Connector(s)
			if all, silent, err = call.Twins().All(ctx); err != nil {
				return nil, nil, err
			}
			for _, t := range all {
				if err := call.Twins().Count(ctx, t); err != nil {
					return nil, nil, err
				}
			}
		}
	}
	for _, r := range c.Register().Twins() {
		if r.Site == name {
			continue
		}
		t := &hosts.Twin{Record: r}
		t.Nodes, t.Running = sites.Count(ctx, c, &site.Site{Name: r.Site, Twin: r.Options.Name})
		all = append(all, t)
	}
	return all, silent, nil
}
