package releases

import (
	"maps"
	"slices"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/register"
	"orrery/internal/observe"
	"orrery/internal/plan/diff"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Sources returns what the digests in the records of a site's nodes may stand for: the site as it is
// declared now, as its loaded releases declare it, and as this host has recorded it when it was last
// brought up. Homes are the hosts of nodes, or nil for those on which they are.
func Sources(c *control.Session, s *site.Site, f *apply.Fleet, seen []observe.Host,
	homes map[string]string) diff.Sources {
	if homes == nil {
		homes = observe.HostByNode(seen, s.Stage)
	}
	all := []*site.Site{s}
	loaded := f.Views().Releases()
	for _, number := range slices.Sorted(maps.Keys(loaded)) {
		all = append(all, loaded[number])
	}
	all = append(all, c.Register().Declarations(register.UpRecord{Site: s.Name, Twin: s.Twin})...)
	var sources diff.Sources
	for _, declared := range all {
		sources = append(sources, spec.NewBuilder(declared.WithHosts(homes)))
	}
	return sources
}
