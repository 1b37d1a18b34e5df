package volume

import (
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestSourcesMatch: each source that a site can declare has an implementation, which stores data
// where its description says.
func TestSourcesMatch(t *testing.T) {
	if len(Sources) != len(site.VolumeSources) {
		t.Errorf("there are %d sources here; a site has %d", len(Sources), len(site.VolumeSources))
	}
	dirs := host.Dirs{State: "/state", Run: "/run/orrery"}
	for _, s := range site.VolumeSources {
		on, ok := Sources[s.Key]
		if !ok {
			t.Errorf("source %q: it is in no list here", s.Key)
			continue
		}
		root := on.Root(dirs, "karoo", spec.Mount{Volume: "data", Source: "/srv/data"})
		if strings.HasPrefix(root, dirs.Volumes("karoo")+"/") != s.WithState {
			t.Errorf("source %q: with the state is %v, and it is at %s", s.Key, s.WithState, root)
		}
		if s.Everywhere != (s.Address != nil) || s.Address != nil && (s.Left == "" || !s.Valid(s.Example)) {
			t.Errorf("source %q: %+v", s.Key, s)
		}
	}
}

func TestPathsOfSources(t *testing.T) {
	dirs := host.Dirs{State: "/state", Run: "/run/orrery"}
	state, copies := dirs.Volumes("karoo"), dirs.VolumeCopies("karoo", 700)
	far := site.Remote{NFS: "nas:/x"}
	exported := filepath.Join("/run/orrery/nfs", spec.DigestBytes([]byte("nas:/x")))
	for want, m := range map[string]spec.Mount{
		state + "/data/db":    {Volume: "data"},
		state + "/data/@all":  {Volume: "data", Shared: true},
		"/srv/data/db":        {Volume: "data", Source: "/srv/data"},
		"/srv/data":           {Volume: "data", Source: "/srv/data", Shared: true},
		exported + "/db":      {Volume: "data", Remote: far},
		exported:              {Volume: "data", Remote: far, Shared: true},
		copies + "/data/db":   {Volume: "data", Remote: far, Copy: site.CopyEmpty, Release: 700},
		copies + "/data/@all": {Volume: "data", Source: "/srv/data", Copy: site.CopySnapshot, Release: 700, Shared: true},
	} {
		if got := Path(dirs, "karoo", "db", m); got != want {
			t.Errorf("%+v is at %s, not at %s", m, got, want)
		}
	}
}
