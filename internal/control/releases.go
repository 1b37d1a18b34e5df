package control

import (
	"maps"

	"orrery/internal/apply"
	"orrery/internal/site"
)

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
