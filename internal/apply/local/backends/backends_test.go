package backends

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// TestDisks: volumes and copies of them are created, listed and removed in the directories of
// package volume.
func TestDisks(t *testing.T) {
	dir := t.TempDir()
	d := disks{host.Dirs{State: dir, Run: dir}}
	n := &spec.Node{Site: "karoo", Name: "db", ID: 1}
	me := volume.NodeRoot{Owner: func(string) (int, int, error) { return os.Geteuid(), os.Getegid(), nil }}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	rows := spec.Mount{Volume: "rows", Path: "/srv", Owner: "root:root", Mode: 0o755}
	must(d.Provide(t.Context(), n, rows, me))
	all, err := d.List("karoo")
	if err != nil || len(all) != 1 || all[0].Node != "db" {
		t.Fatalf("%+v, %v", all, err)
	}
	copied := rows
	copied.Copy, copied.Release = site.CopyEmpty, 700
	for range 2 {
		if _, err := d.ProvideCopy(t.Context(), n, copied, me, nil); err != nil {
			t.Fatal(err)
		}
	}
	must(d.Drop(n, copied))
	must(d.DropCopies("karoo", 700))
	must(d.Erase(all[0].Path))
	must(d.Sweep("karoo"))
	for _, path := range []string{all[0].Path, filepath.Join(d.dirs.VolumeCopies("karoo", 700), "rows", "db")} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if found, err := records(d).All("karoo"); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := records(d).Read("karoo", 1); err == nil {
		t.Error("there is a record of no node")
	}
	if got := sysctls(d).Settings([]string{"kernel.ostype"}); got["kernel.ostype"] != "Linux" {
		t.Errorf("the kernel is %v", got)
	}
}
