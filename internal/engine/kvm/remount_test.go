package kvm

import (
	"slices"
	"testing"

	"orrery/internal/engine/nodedir"
	"orrery/internal/image/rootfs"
)

// TestDoomed: unwanted mounts are doomed, and so are mounts inside a path that changes, innermost
// first. All others stay.
func TestDoomed(t *testing.T) {
	a, b, c := t.TempDir(), t.TempDir(), t.TempDir()
	origins, err := rootfs.MountSourcesOf(a, b, c)
	must(t, err)
	at := func(path string, of int) rootfs.MountInfo { return rootfs.MountInfo{At: path, Source: origins[of]} }
	table := []rootfs.MountInfo{at("/srv/data", 0), at("/srv/data/in", 1), at("/srv/database", 2)}
	for _, test := range []struct {
		name   string
		wanted []nodedir.Mount
		doomed []string
	}{
		{"nothing changes", []nodedir.Mount{{Source: a, Path: "/srv/data"}, {Source: b, Path: "/srv/data/in"},
			{Source: c, Path: "/srv/database"}}, nil},
		{"none is wanted", nil, []string{"/srv/database", "/srv/data/in", "/srv/data"}},
		{"the outer one changes", []nodedir.Mount{{Source: c, Path: "/srv/data"}, {Source: b, Path: "/srv/data/in"},
			{Source: c, Path: "/srv/database"}}, []string{"/srv/data/in", "/srv/data"}},
		{"the inner one goes", []nodedir.Mount{{Source: a, Path: "/srv/data"}, {Source: c, Path: "/srv/database"}},
			[]string{"/srv/data/in"}},
		{"one comes around all", []nodedir.Mount{
			{Source: t.TempDir(), Path: "/srv"}, {Source: a, Path: "/srv/data"}, {Source: b, Path: "/srv/data/in"},
			{Source: c, Path: "/srv/database"},
		}, []string{"/srv/database", "/srv/data/in", "/srv/data"}},
		{"its directory is gone", []nodedir.Mount{{Source: a + "/gone", Path: "/srv/data"},
			{Source: c, Path: "/srv/database"}}, []string{"/srv/data/in", "/srv/data"}},
	} {
		if got, err := mountsToRemove(table, test.wanted); err != nil || !slices.Equal(got, test.doomed) {
			t.Errorf("%s: %q, want %q: %v", test.name, got, test.doomed, err)
		}
	}
}
