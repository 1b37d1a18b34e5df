package control

import (
	"maps"

	"orrery/internal/apply/local"
	"orrery/internal/site"
)

// LoadLive gives a host the releases that are live on it. What of them cannot be read is told by whoever needs it: it
// must not keep a site from being taken down.
func (c *Session) LoadLive(h *local.Host) error {
	r, err := h.ReadReleases()
	if err != nil {
		return err
	}
	_ = c.LoadReleases(h, r.Active)
	return nil
}

// LoadReleases gives a host the releases of some nodes, if it has not got them yet.
func (c *Session) LoadReleases(h *local.Host, of map[string]int) error {
	if h.Releases == nil {
		h.Releases = map[int]*site.Site{}
	}
	for _, number := range of {
		if number == 0 || h.Releases[number] != nil || h.Site.Stage == number {
			continue
		}
		s, err := c.LoadRelease(h.Site, number)
		if err != nil {
			return err
		}
		h.Releases[number] = s
		h.Keys.Also(s)
	}
	return nil
}

// SitesOf gives what a switch needs: the site as each of the releases makes it, and as it is without any.
func SitesOf(h *local.Host) map[int]*site.Site {
	all := map[int]*site.Site{}
	maps.Copy(all, h.Releases)
	base := 0
	if len(h.Site.Nodes) > 0 {
		base = h.Site.Nodes[0].Release
	}
	all[base] = h.Site
	return all
}
