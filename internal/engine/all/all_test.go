package all

import (
	"maps"
	"slices"
	"testing"

	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/site"
)

// What a site file may name is what there is.
func TestSiteKnowsTheEngines(t *testing.T) {
	have := slices.Sorted(maps.Keys(Engines(host.Dirs{}, image.Open(t.TempDir()))))
	if !slices.Equal(have, slices.Sorted(slices.Values(site.Engines))) {
		t.Errorf("site.Engines is %v, but there are %v", site.Engines, have)
	}
}
