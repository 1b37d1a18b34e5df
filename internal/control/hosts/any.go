package hosts

import (
	"context"

	"orrery/internal/apply"
)

// Layers returns the layer store of a host of the site. The store is shared by all sites on that
// host.
func (c *Connector) Layers(ctx context.Context, name string) (apply.LayerHost, error) {
	h, ok := c.Site.Host(name)
	if !ok {
		return nil, UnknownHostError(c.Site, name)
	}
	if h.Local() {
		return c.Machine.Host(name, "", nil).Layers, c.Machine.Allowed()
	}
	l, err := c.Link(ctx, *h)
	if err != nil {
		return nil, err
	}
	return l.Host("", nil).Layers, nil
}
