package all

import (
	"maps"
	"slices"
	"testing"

	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/site"
)

// TestSiteKnowsTheEngines: a site file accepts exactly the engines that exist.
func TestSiteKnowsTheEngines(t *testing.T) {
	have := slices.Sorted(maps.Keys(Engines(host.Dirs{}, image.Open(t.TempDir()))))
	if !slices.Equal(have, slices.Sorted(slices.Values(site.Engines))) {
		t.Errorf("site.Engines is %v, but there are %v", site.Engines, have)
	}
}
