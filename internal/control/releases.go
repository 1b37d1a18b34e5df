package control

import (
	"maps"

	"orrery/internal/apply"
	"orrery/internal/site"
)

// SitesOf gives what a switch needs: the site as each of the releases makes it, and as it is without any.
func SitesOf(f *apply.Fleet) map[int]*site.Site {
	all := map[int]*site.Site{}
	maps.Copy(all, f.Releases())
	base := 0
	if len(f.Site().Nodes) > 0 {
		base = f.Site().Nodes[0].Release
	}
	all[base] = f.Site()
	return all
}
