package sites

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// TestSites: a host lists its sites and their directories, whether they are up or down, and whether
// the directories still exist.
func TestSites(t *testing.T) {
	a := &control.Session{Dirs: host.Dirs{State: t.TempDir(), Run: t.TempDir()}}
	here := t.TempDir()
	if err := os.WriteFile(filepath.Join(here, "site.toml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range []site.Site{{Name: "karoo", Production: true}, {Name: "lost"}, {Name: "rest"}} {
		dir := here
		if s.Name == "lost" {
			dir = "/no/such/directory"
		}
		if err := os.MkdirAll(a.Dirs.Site(s.Key()), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := a.Register().MarkUp(&s, dir); err != nil {
			t.Fatal(err)
		}
	}
	a.Register().MarkDown("rest")
	for _, dir := range []string{"unknown", ".karoo.dev2-new"} {
		if err := os.MkdirAll(a.Dirs.Site(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Register().WriteTwin(twin.Record{Site: "karoo", Dir: here, Options: twin.Options{Name: "dev1"},
		Created: time.Now()}); err != nil {
		t.Fatal(err)
	}
	rows, err := All(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprint(r.Key(), " ", r.Up, " ", strings.Replace(r.Dir, here, "here", 1), " ", r.Gone))
	}
	want := "karoo true here false\nkaroo.dev1 false here false\nlost true /no/such/directory true\nrest false here false\nunknown false  false"
	if strings.Join(got, "\n") != want {
		t.Errorf("%s\nwant:\n%s", strings.Join(got, "\n"), want)
	}
}
