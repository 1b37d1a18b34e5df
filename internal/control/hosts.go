package control

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/control/hosts"
	"orrery/internal/observe"
	"orrery/internal/site"
)

// CheckAllowedOn returns an Unable problem if the caller may not change this machine's part of a site.
// It checks nothing if the site is only on other hosts, because those decide themselves whom they
// let in.
func (c *Session) CheckAllowedOn(s *site.Site) error {
	if !hosts.IncludesLocal(s) {
		return nil
	}
	return c.Allowed()
}

// Hosts returns the hosts of a site, with the releases that are live on them. It returns an error
// if a host does not answer, unless that host is left out by --without.
func (c *Session) Hosts(ctx context.Context, s *site.Site) (*apply.Fleet, error) {
	f, silent, err := c.ReachableHosts(ctx, s)
	if err == nil {
		err = silent
	}
	return f, err
}

// Connector returns the Connector that connects to the hosts of a site and queries their state.
func (c *Session) Connector(s *site.Site) *hosts.Connector {
	dir, _ := c.AbsDirectory() // a site that is known only by its name has no directory
	return &hosts.Connector{
		Links: c.Links, Machine: c.Local(), Dirs: c.Dirs, Site: s, Dir: dir, Without: c.Without, Known: c.Known,
		Notice: func(format string, args ...any) { c.Notice(s.Key(), format, args...) },
	}
}

// ReachableHosts returns the hosts of a site that answer. Silent is the error of those that do not.
// Nothing is known about them.
func (c *Session) ReachableHosts(ctx context.Context, s *site.Site) (f *apply.Fleet, silent, err error) {
	return c.Connector(s).Connect(ctx)
}

// HostsWithoutReleases returns the hosts of a site without learning which releases are live there.
// It returns an error if a host does not answer, unless that host is left out by --without.
func (c *Session) HostsWithoutReleases(ctx context.Context, s *site.Site) (*apply.Fleet, error) {
	f, silent, err := c.Connector(s).ConnectWithoutReleases(ctx)
	if err == nil {
		err = silent
	}
	return f, err
}

// Observe returns the observed state of the hosts of a site.
func (c *Session) Observe(ctx context.Context, f *apply.Fleet) ([]observe.Host, error) {
	if err := checkMayChange(c, f); err != nil {
		return nil, err
	}
	return f.Observe(ctx)
}

// ObserveReleased returns the hosts of a site, what is on them, and the site with every node as its live
// release declares it.
func ObserveReleased(ctx context.Context, c *Session, s *site.Site) (f *apply.Fleet, seen []observe.Host,
	live *site.Site, err error) {
	if f, err = c.Hosts(ctx, s); err != nil {
		return nil, nil, nil, err
	}
	if seen, err = c.Observe(ctx, f); err != nil {
		return nil, nil, nil, err
	}
	live, err = f.Views().Released(s, seen)
	return f, seen, live, err
}

// checkMayChange returns an Unable problem if the caller may not change what is on the hosts. One of
// them may be this machine.
func checkMayChange(c *Session, f *apply.Fleet) error {
	if len(f.All) == 0 {
		return c.Allowed()
	}
	return c.CheckAllowedOn(f.Site())
}
