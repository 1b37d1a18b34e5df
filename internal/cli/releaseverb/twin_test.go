package releaseverb

import (
	"path/filepath"
	"testing"
	"time"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// TestCreation: the record of a new twin has the values of the flags, and invalid values are
// refused.
func TestCreation(t *testing.T) {
	original := &site.Site{Name: "s", Nodes: []site.Node{{Name: "one"}, {Name: "two"}},
		Releases: []site.Release{{Number: 7}, {Number: 8}}}
	n := twinFlags{Options: twin.Options{Name: "dev", Owner: "ada"}, only: []string{"two"}, scale: "cpus=0.5",
		volumes: "fill", release: "next", expires: time.Hour}
	r, err := n.record(original, "/srv/s")
	if err != nil {
		t.Fatal(err)
	}
	if r.Site != "s" || r.Dir != "/srv/s" || r.Options.Release != 8 || len(r.Options.Only) != 1 ||
		!r.Expires.Equal(r.Created.Add(time.Hour)) || !filepath.IsAbs(r.Volumes) {
		t.Errorf("%+v", r)
	}
	for name, n := range map[string]twinFlags{
		"--scale": {scale: "x"}, "--release": {release: "x"}, "--only": {only: []string{"none"}},
	} {
		n.volumes = site.CopyEmpty
		if _, err := n.record(original, "/srv/s"); problem.ExitCode(err) != int(problem.Usage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
