package hosts

import (
	"context"

	"orrery/internal/apply"
)

// AnySite gives a host of the site as one of all sites that are there.
func (c *Call) AnySite(ctx context.Context, name string) (apply.Host, error) {
	h, ok := c.Site.Host(name)
	if !ok {
		return nil, NoHost(c.Site, name)
	}
	if h.Local() {
		return c.Machine.Host(name, "", nil), c.Machine.Allowed()
	}
	l, err := c.Link(ctx, *h)
	if err != nil {
		return nil, err
	}
	return l.Host("", nil), nil
}
