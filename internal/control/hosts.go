package control

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/control/hosts"
	"orrery/internal/observe"
	"orrery/internal/site"
)

// AllowedOn returns an Unable problem if the caller may not change what this machine has of a site.
// For what is on others he need be nobody here: whom they let in is theirs to say.
func (c *Session) AllowedOn(s *site.Site) error {
	if !hosts.Near(s) {
		return nil
	}
	return c.Allowed()
}

// Hosts returns the hosts of a site, with the releases that are live on them. Each of them must
// answer, but those that are left out.
func (c *Session) Hosts(ctx context.Context, s *site.Site) (*apply.Fleet, error) {
	f, silent, err := c.Reached(ctx, s)
	if err == nil {
		err = silent
	}
	return f, err
}

// Call asks which hosts of a site answer, and how they are.
func (c *Session) Call(s *site.Site) *hosts.Call {
	dir, _ := c.Absolute() // of a site that is known by its name, there is none
	return &hosts.Call{
		Links: c.Links, Machine: c.Local(), Dirs: c.Dirs, Site: s, Dir: dir, Without: c.Without, Known: c.Known,
		Notice: func(format string, args ...any) { c.Notice(s.Key(), format, args...) },
	}
}

// Reached returns those hosts of a site that answer. Silent tells why others do not; of these nothing is known.
func (c *Session) Reached(ctx context.Context, s *site.Site) (f *apply.Fleet, silent, err error) {
	return c.Call(s).Fleet(ctx)
}

// Bare returns the hosts of a site of which not much more than the key need be known. Each of them
// must answer, but those that are left out.
func (c *Session) Bare(ctx context.Context, s *site.Site) (*apply.Fleet, error) {
	f, silent, err := c.Call(s).Bare(ctx)
	if err == nil {
		err = silent
	}
	return f, err
}

// Seen returns the hosts of a site as they are.
func (c *Session) Seen(ctx context.Context, f *apply.Fleet) ([]observe.Host, error) {
	if err := mayChange(c, f); err != nil {
		return nil, err
	}
	return f.Observe(ctx)
}

// mayChange returns an Unable problem if the caller may not change what is on the hosts, one of
// which may be this machine.
func mayChange(c *Session, f *apply.Fleet) error {
	if len(f.All) == 0 {
		return c.Allowed()
	}
	return c.AllowedOn(f.Site())
}
