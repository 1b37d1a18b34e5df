package sites

import (
	"os"
	"strings"
	"testing"

	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// TestSiteByName: a site without its directory is known as far as possible, and a mistyped name is
// reported.
func TestSiteByName(t *testing.T) {
	a := &control.Session{Dirs: host.Dirs{State: t.TempDir(), Run: t.TempDir()}}
	for name, production := range map[string]bool{"karoo": true, "lost": false} {
		if err := os.MkdirAll(a.Dirs.Site(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := a.Register().MarkUp(&site.Site{Name: name, Production: production}, "/no/such/directory"); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(a.Dirs.Site("unknown"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, production := range map[string]bool{"karoo": true, "lost": false, "unknown": true} {
		if s, err := siteByName(a, name); err != nil || s.Production != production {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	for name, want := range map[string]string{"karo": "did you mean karoo?", "..": "orrery ls", "": "orrery ls",
		"nothing-like-it": "orrery ls"} {
		if _, err := siteByName(a, name); problem.ExitCode(err) != int(problem.Usage) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
