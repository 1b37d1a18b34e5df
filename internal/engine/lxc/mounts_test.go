package lxc

import (
	"os"
	"strings"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/site/spec"
)

func TestVolumes(t *testing.T) {
	e := New(host.Dirs{State: t.TempDir()}, image.Open(t.TempDir()))
	n := &spec.Node{Site: "karoo", Name: "db", ID: 101}
	c := e.container(engine.RefOf(n))
	a, b, none := at("a", "/srv/data"), at("b", "/srv/data/"), at("a", "/srv/data")
	none.Copy = spec.NoCopy
	paths := func(mounts ...spec.Mount) string {
		var all []string
		for _, m := range e.volumes(c, n, mounts) {
			all = append(all, strings.TrimPrefix(m.source, e.Dirs.Volumes("karoo"))+" at "+m.path)
		}
		return strings.Join(all, ", ")
	}
	for _, c := range []struct{ got, want string }{
		{paths(at("in", "/srv/data/in"), a), "/a/db at /srv/data, /in/db at /srv/data/in"},
		{paths(a, b), "/b/db at /srv/data"}, // of a run that was killed: what was to come
		{paths(b, a), "/a/db at /srv/data"},
		{paths(a, none), ""},
		{paths(none, b), "/b/db at /srv/data"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
	all := e.volumes(c, n, []spec.Mount{a, at("a", "/srv/other"), at("b", "/srv/third")})
	if all[0].bind == all[1].bind || all[0].bind == all[2].bind {
		t.Error("two mounts have one directory to bind")
	}
}

func TestFstab(t *testing.T) {
	e := New(host.Dirs{State: t.TempDir()}, image.Open(t.TempDir()))
	c := e.container(engine.Ref{Site: "karoo", ID: 101, Name: "db"})
	if err := os.MkdirAll(c.Path(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := c.writeFstab([]mount{{bind: "/binds/etc", path: "/etc/orrery", readOnly: true}, {bind: "/binds/x", path: `/srv/a b\c`}}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(c.fstab())
	want := "/binds/etc etc/orrery none bind,create=dir,ro 0 0\n/binds/x srv/a\\040b\\134c none bind,create=dir 0 0\n"
	if err != nil || string(text) != want {
		t.Errorf("%v, %q", err, text)
	}
}
