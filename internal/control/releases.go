package control

import (
	"context"
	"maps"

	"orrery/internal/apply"
	"orrery/internal/control/hosts"
	"orrery/internal/site"
)

// LoadLive gives a host the releases that are live on it. What of them cannot be read is told by whoever needs it: it
// must not keep a site from being taken down.
func (c *Session) LoadLive(h *apply.Steered) error {
	r, err := h.ReadReleases(context.Background()) // of this machine
	if err != nil {
		return err
	}
	_ = c.LoadReleases(h, r.Active)
	return nil
}

// LoadReleases gives a host the releases of some nodes, if it has not got them yet.
func (c *Session) LoadReleases(h *apply.Steered, of map[string]int) error {
	for _, number := range of {
		if number == 0 || h.Releases[number] != nil || h.Site.Stage == number {
			continue
		}
		s, err := c.LoadRelease(h.Site, number)
		if err != nil {
			return err
		}
		h.Has(number, s)
	}
	return nil
}

// loadReleases gives the hosts of a site the releases of some nodes, if they have not got them yet.
func (c *Session) loadReleases(ctx context.Context, f *apply.Fleet, s *site.Site, of map[string]int) error {
	if hosts.Far(s) {
		return c.Call(s).Learn(ctx, f, of)
	}
	return c.LoadReleases(f.All[0], of)
}

// SitesOf gives what a switch needs: the site as each of the releases makes it, and as it is without any.
func SitesOf(h *apply.Steered) map[int]*site.Site {
	all := map[int]*site.Site{}
	maps.Copy(all, h.Releases)
	base := 0
	if len(h.Site.Nodes) > 0 {
		base = h.Site.Nodes[0].Release
	}
	all[base] = h.Site
	return all
}
