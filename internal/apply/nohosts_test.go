package apply

import (
	"testing"
)

// TestNoHosts: if all hosts of a site are left out, all of them are reported as unknown, without an
// error.
func TestNoHosts(t *testing.T) {
	f := &Fleet{Unknown: []string{"sv1", "sv2"}}
	seen, err := f.Observe(t.Context())
	if err != nil || len(seen) != 2 || !seen[0].Unknown || seen[1].Name != "sv2" {
		t.Errorf("seen are %+v, %v", seen, err)
	}
	present, err := f.ListNodes(t.Context(), InspectFull)
	if err != nil || len(present) > 0 {
		t.Errorf("present are %v, %v", present, err)
	}
	f.SecretKeeper().UseHosts()
	f.Views().SetHomes(map[string]string{"web": "sv1"})
	if s := f.Site(); s != nil || f.Views().Releases() != nil || len(f.StartRun()) > 0 {
		t.Errorf("of the site it is known %+v", s)
	}
	if _, known := f.Host("sv1"); known {
		t.Error("a host that was left out is there")
	}
}
