package lxc

import (
	"os"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/image"
)

func TestFstab(t *testing.T) {
	e := New(host.Dirs{State: t.TempDir()}, image.Open(t.TempDir()))
	c := e.container(engine.Ref{Site: "karoo", ID: 101, Name: "db"})
	if err := os.MkdirAll(c.Path(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeFstab(c.fstab(), []nodedir.Mount{{Bind: "/binds/etc", Path: "/etc/orrery", ReadOnly: true},
		{Bind: "/binds/x", Path: `/srv/a b\c`}}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(c.fstab())
	want := "/binds/etc etc/orrery none bind,create=dir,ro 0 0\n/binds/x srv/a\\040b\\134c none bind,create=dir 0 0\n"
	if err != nil || string(text) != want {
		t.Errorf("%v, %q", err, text)
	}
}
