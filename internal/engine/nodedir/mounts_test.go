package nodedir

import (
	"strings"
	"testing"

	"orrery/internal/image/rootfs"
	"orrery/internal/site/spec"
)

func TestVolumes(t *testing.T) {
	nodes := nodesIn(t.TempDir())
	n := &spec.Node{Site: "karoo", Name: "db", ID: 101}
	at := func(volume, path string) spec.Mount {
		return spec.Mount{Volume: volume, Path: path, Owner: "root:root", Mode: 0o755}
	}
	a, b, none := at("a", "/srv/data"), at("b", "/srv/data/"), at("a", "/srv/data")
	none.Copy = spec.NoCopy
	paths := func(mounts ...spec.Mount) string {
		var all []string
		for _, m := range nodes.Volumes(n, mounts) {
			all = append(all, strings.TrimPrefix(m.Source, nodes.Dirs.Volumes("karoo"))+" at "+m.Path)
		}
		return strings.Join(all, ", ")
	}
	for _, c := range []struct{ got, want string }{
		{paths(at("in", "/srv/data/in"), a), "/a/db at /srv/data, /in/db at /srv/data/in"},
		{paths(a, b), "/b/db at /srv/data"}, // recorded by a run that was killed: the later entry wins
		{paths(b, a), "/a/db at /srv/data"},
		{paths(a, none), ""},
		{paths(none, b), "/b/db at /srv/data"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
	all := nodes.Volumes(n, []spec.Mount{a, at("a", "/srv/other"), at("b", "/srv/third")})
	if all[0].Bind == all[1].Bind || all[0].Bind == all[2].Bind {
		t.Error("two mounts have one directory to bind")
	}
}

// TestMountsOfANode: an engine finds a node's mounts beside the root, or puts them inside.
func TestMountsOfANode(t *testing.T) {
	nodes := nodesIn(t.TempDir())
	r := &Record{Node: spec.Node{Site: "karoo", Name: "db", ID: 101,
		Mounts: []spec.Mount{{Volume: "data", Path: "/srv/data", Owner: "root:root", Mode: 0o755}}}}
	all, err := nodes.Mounts(r)
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	etc := nodes.Dirs.Etc("karoo", 101)
	d := Of(nodes.Dirs, "karoo", 101)
	if all[0].Inside() != (rootfs.Bind{Source: etc, Target: "/etc/orrery", ReadOnly: true}) ||
		all[0].Outside() != (rootfs.Bind{Source: etc, Target: d.Bind("etc"), ReadOnly: true}) {
		t.Errorf("/etc/orrery is %+v", all[0])
	}
	if in := all[1].Inside(); in.Target != "/srv/data" || in.ReadOnly || !exists(etc) {
		t.Errorf("the volume is %+v", in)
	}
}
