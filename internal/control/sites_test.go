package control

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/control/register"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// TestSites: a host knows its sites and the directories that they came from, be they up or down and the directories there or gone.
func TestSites(t *testing.T) {
	a := &Session{Register: register.Register{Dirs: host.Dirs{State: t.TempDir(), Run: t.TempDir()}}}
	here := t.TempDir()
	if err := os.WriteFile(filepath.Join(here, "site.toml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range []site.Site{{Name: "karoo", Production: true}, {Name: "lost"}, {Name: "rest"}} {
		b := *a
		if b.SiteDir = here; s.Name == "lost" {
			b.SiteDir = "/no/such/directory"
		}
		if err := os.MkdirAll(a.Dirs.Site(s.Key()), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := b.markUp(&s); err != nil {
			t.Fatal(err)
		}
	}
	a.Unmark("rest")
	for _, dir := range []string{"unknown", ".karoo.dev2-new"} {
		if err := os.MkdirAll(a.Dirs.Site(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.WriteTwin(twin.Record{Site: "karoo", Dir: here, Options: twin.Options{Name: "dev1"}, Created: time.Now()}); err != nil {
		t.Fatal(err)
	}
	rows, err := a.Sites(t.Context())
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

	for name, production := range map[string]bool{"karoo": true, "lost": false, "unknown": true} {
		if s, err := a.siteByName(name); err != nil || s.Production != production {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	for name, want := range map[string]string{"karo": "did you mean karoo?", "..": "orrery ls", "": "orrery ls", "nothing-like-it": "orrery ls"} {
		if _, err := a.siteByName(name); problem.Exit(err) != int(problem.Usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
