package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestAdopt: the new node gets the data, its own former data is kept, and a repeated call completes
// what a kill left unfinished.
func TestAdopt(t *testing.T) {
	dirs := host.Dirs{State: t.TempDir()}
	path := func(volume, node string) string { return filepath.Join(dirs.Volumes("karoo"), volume, node) }
	put := func(volume, node string) {
		t.Helper()
		if err := os.MkdirAll(path(volume, node), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path(volume, node), "of"), []byte(volume+" of "+node), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check := func(volume, node, want string) {
		t.Helper()
		if text, _ := os.ReadFile(filepath.Join(path(volume, node), "of")); string(text) != want {
			t.Errorf("%s of %s holds %q, want %q", volume, node, text, want)
		}
	}
	put("data", "db0")
	put("log", "db0")
	put("log", "db")
	if err := os.MkdirAll(path("data", "db"), 0o755); err != nil {
		t.Fatal(err)
	}
	heir := &spec.Node{Name: "db", Mounts: []spec.Mount{{Volume: "data"}, {Volume: "log"}, {Volume: "all", Shared: true},
		{Volume: "far", Remote: site.Remote{NFS: "x:/y"}}}}
	adopt := func(from string, named ...string) error {
		t.Helper()
		all, err := Adoptions(dirs, "karoo", from, heir, named)
		for _, a := range all {
			if _, err := a.Adopt(); err != nil {
				t.Fatal(err)
			}
		}
		return err
	}
	for from, named := range map[string][]string{"db0": {"far"}, "none": nil, "../db0": nil, "db": nil, "@all": {"all"}} {
		if err := adopt(from, named...); err == nil {
			t.Errorf("%s gives %v", from, named)
		}
	}
	// A run that was killed after it had set aside the new node's former data.
	if err := os.Rename(path("log", "db"), path("log", "db.before")); err != nil {
		t.Fatal(err)
	}
	if err := adopt("db0"); err != nil {
		t.Fatal(err)
	}
	check("data", "db", "data of db0")
	check("log", "db", "log of db0")
	check("log", "db.before", "log of db")
	put("journal", "db")
	if err := adopt("db", "journal=log"); err != nil {
		t.Fatal(err)
	}
	check("log", "db", "journal of db")
	check("log", "db.before", "log of db")
	check("log", "db.before2", "log of db0")
	if err := adopt("db0"); err == nil || !strings.Contains(err.Error(), "db0 has no volume data") {
		t.Errorf("once more: %v", err)
	}
}
