package all

import (
	"maps"
	"slices"
	"testing"

	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/site"
)

// coming are engines that a site file may name, and that are being written: until they are there, a plan says that hosts lack them.
var coming = []string{site.KVM}

// What a site file may name is what there is.
func TestSiteKnowsTheEngines(t *testing.T) {
	have := append(slices.Collect(maps.Keys(Engines(host.Dirs{}, image.Open(t.TempDir())))), coming...)
	slices.Sort(have)
	if !slices.Equal(have, slices.Sorted(slices.Values(site.Engines))) {
		t.Errorf("site.Engines is %v, but there are %v", site.Engines, have)
	}
}
