// Package hosts connects to the hosts of a site. One of them may be this machine. The package also
// rejects site features that do not work with other hosts yet.
package hosts

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"orrery/internal/apply"
	"orrery/internal/apply/remote"
	"orrery/internal/control/here"
	"orrery/internal/control/register"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Links holds the connections of a session to other hosts. There is one connection to each host,
// for all operations.
type Links struct {
	mutex sync.Mutex
	all   map[site.Host]*remote.Link
}

// Close closes all connections.
func (l *Links) Close() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var all sync.WaitGroup
	for _, one := range l.all {
		all.Go(one.Close)
	}
	all.Wait()
	l.all = nil
}

// Get returns the connection to a host, and connects if there is none.
func (l *Links) Get(ctx context.Context, m here.Machine, h site.Host) (*remote.Link, error) {
	l.mutex.Lock()
	one, ok := l.all[h]
	l.mutex.Unlock()
	if ok {
		return one, nil
	}
	one, err := m.Reach(ctx, h)
	if err != nil {
		return nil, err
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.all == nil {
		l.all = map[site.Host]*remote.Link{}
	}
	l.all[h] = one
	return one, nil
}

// RemoteNames returns the names of the site's hosts that are other machines.
func RemoteNames(s *site.Site) (names []string) {
	for _, h := range s.Hosts {
		if !h.Local() {
			names = append(names, h.Name)
		}
	}
	return names
}

// IncludesLocal reports whether this machine is a host of the site.
func IncludesLocal(s *site.Site) bool {
	return len(s.Hosts) == 0 || slices.ContainsFunc(s.Hosts, site.Host.Local)
}

// A Connector connects to the hosts of a site and queries their state.
type Connector struct {
	Links   *Links
	Machine here.Machine
	Dirs    host.Dirs
	Site    *site.Site
	Dir     string                           // the site directory
	Without []string                         // hosts that are left out
	Known   *register.KnownTwins             // known twins
	Notice  func(format string, args ...any) // reports something to the caller at once
}

// Connect returns the hosts that answer, with the releases that are live on them. Silent is the error
// of the hosts that do not answer. Nothing is known about those, nor about hosts that are left out.
func (c *Connector) Connect(ctx context.Context) (f *apply.Fleet, silent, err error) {
	if f, silent, err = c.ConnectWithoutReleases(ctx); f == nil || err != nil {
		return nil, silent, err
	}
	return f, silent, c.Releases(f).LoadLive(ctx)
}

// ConnectForTeardown returns the hosts for an operation that takes down what is on them. If a release cannot
// be read, it reports that and continues.
func (c *Connector) ConnectForTeardown(ctx context.Context) (f *apply.Fleet, silent, err error) {
	if f, silent, err = c.ConnectWithoutReleases(ctx); f == nil || err != nil {
		return nil, silent, err
	}
	r, err := f.Records().Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := c.Releases(f).LoadReleases(ctx, r.Active); err != nil {
		c.Notice("%v", err)
	}
	return f, silent, ctx.Err()
}

// ConnectWithoutReleases returns the hosts that answer, without learning which releases are live.
func (c *Connector) ConnectWithoutReleases(ctx context.Context) (f *apply.Fleet, silent, err error) {
	return c.scope().reach(ctx)
}

// links returns the connections to other hosts, in the order of the site's hosts.
func (c *Connector) links(ctx context.Context) (links []*remote.Link, silent error) {
	links, errs := make([]*remote.Link, len(c.Site.Hosts)), make([]error, len(c.Site.Hosts))
	var all sync.WaitGroup
	for i, h := range c.Site.Hosts {
		if !h.Local() && !slices.Contains(c.Without, h.Name) {
			all.Go(func() { links[i], errs[i] = c.Link(ctx, h) })
		}
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			silent = errors.Join(silent, suggestWithout(err, c.Site.Hosts[i].Name))
		}
	}
	return links, silent
}

// add adds a host to a fleet.
func (c *Connector) add(f *apply.Fleet, h site.Host, l *remote.Link) {
	open := func(secrets apply.Secrets) apply.Host {
		if l != nil {
			return l.Host(c.Site.Key(), secrets)
		}
		return c.Machine.Host(h.Name, c.Site.Key(), secrets)
	}
	if len(f.All) > 0 {
		f.All = append(f.All, f.All[0].ForHost(h.Name, open))
		return
	}
	f.All = append(f.All, apply.NewHostClient(h.Name, c.Site, c.Dirs, open))
}

// suggestWithout adds to the error of a host that does not answer how to continue without it.
func suggestWithout(err error, name string) error {
	for _, p := range problem.All(err) {
		if p.Cure != "" {
			p.Cure += "; --without " + name + " continues without it"
		}
	}
	return err
}

// maxClockSkew is the largest clock difference between hosts that is not reported.
const maxClockSkew = 2 * time.Second

// skewTooLarge reports whether a clock differs too much. Took is the round-trip time, and half of it may
// explain the skew.
func skewTooLarge(skew, took time.Duration) bool { return skew-took/2 > maxClockSkew }

// skewError returns the error that the clock of a host differs from that of this machine.
func skewError(name string, skew time.Duration) error {
	which := "ahead of"
	if skew < 0 {
		which = "behind"
	}
	return problem.New(problem.Unable, "the clock of host %s is %s %s that of this machine", name,
		skew.Abs().Round(100*time.Millisecond), which).
		Try("synchronise both clocks with chrony or systemd-timesyncd")
}

// checkDistinct returns an error if two host names mean the same machine, and reports clocks that
// differ.
func (c *Connector) checkDistinct(links []*remote.Link) error {
	machines := make([]string, len(links))
	for i, h := range c.Site.Hosts {
		switch l := links[i]; {
		case l != nil:
			machines[i] = l.Machine
			if skewTooLarge(l.Skew.Abs(), l.Took) {
				c.Notice("%v", skewError(h.Name, l.Skew))
			}
		case h.Local():
			machines[i] = c.Machine.Self().Machine
		}
	}
	for i, h := range c.Site.Hosts {
		if other := sameMachine(c.Site.Hosts, machines, i); other != nil {
			return problem.New(problem.Mistake, "hosts %s and %s are the same machine, at %s and at %s", other.Name, h.Name,
				other.Address, h.Address).At("site.toml").
				Try("keep one of them")
		}
	}
	return nil
}

// sameMachine returns the host before index as that is the same machine, or nil. A host that does
// not answer has an empty machine name, which matches none.
func sameMachine(hosts []site.Host, machines []string, as int) *site.Host {
	if i := slices.Index(machines, machines[as]); i < as && machines[as] != "" {
		return &hosts[i]
	}
	return nil
}
