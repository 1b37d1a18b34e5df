package volume

import (
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestUsers: all nodes that write into a directory are found, whichever mount they use.
func TestUsers(t *testing.T) {
	dirs := host.Dirs{State: "/s", Run: "/r"}
	node := func(name string, m ...spec.Mount) *spec.Node { return &spec.Node{Name: name, Mounts: m} }
	nodes := []*spec.Node{
		node("own", spec.Mount{Volume: "data"}),
		node("shares", spec.Mount{Volume: "other"}, spec.Mount{Volume: "common", Shared: true}),
		node("too", spec.Mount{Volume: "common", Shared: true}),
		node("staged", spec.Mount{Volume: "common", Shared: true, Copy: site.CopySnapshot, Release: 701}),
		node("source", spec.Mount{Volume: "far", Source: "/srv/x", Shared: true}),
		node("inside", spec.Mount{Volume: "near", Source: "/srv/x/deep", Shared: true}),
		node("beside", spec.Mount{Volume: "beside", Source: "/srv/xy", Shared: true}),
	}
	for path, want := range map[string]string{
		"/s/sites/karoo/volumes/data/own":    "own",
		"/s/sites/karoo/volumes/common/@all": "shares too",
		"/srv/x":                             "source inside",
		"/srv/x/deep":                        "source inside",
		"/srv/xy":                            "beside",
		"/elsewhere":                         "",
	} {
		var got []string
		for _, n := range Writers(dirs, "karoo", nodes, path) {
			got = append(got, n.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s is used by %q, want %q", path, got, want)
		}
	}
}
