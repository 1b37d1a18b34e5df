package layers

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"orrery/internal/control"
	"orrery/internal/control/register"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
)

func load(t *testing.T, text string) *site.Site {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"site.toml": text, "roles/one/role.toml": "apt = [\"cron\"]\n", "roles/two/role.toml": "apt = [\"nginx\"]\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := sitefile.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const karoo = `[site]
name = "karoo"
[network.core]
subnet = "10.99.7.0/24"
[image.base]
suite = "bookworm"
`

// TestRecipes: a mirror is for the layers of the site, of its releases and of twins, each once, and each after those that it stands on.
func TestRecipes(t *testing.T) {
	of := func(text string) int {
		t.Helper()
		all, err := recipes(load(t, text))
		if err != nil {
			t.Fatal(err)
		}
		var seen []string
		for _, l := range all {
			if slices.Contains(seen, l.Digest) {
				t.Errorf("%s is there twice", l.Title)
			}
			for _, digest := range l.Lower() {
				if !slices.Contains(seen, digest) {
					t.Errorf("%s is before what it stands on", l.Title)
				}
			}
			seen = append(seen, l.Digest)
		}
		return len(all)
	}
	if n := of(karoo); n != 0 {
		t.Errorf("a site without nodes has %d layers", n)
	}
	nodes := karoo + "[node.a]\nid = 11\nroles = [\"one\"]\n[node.b]\nid = 12\nroles = [\"one\"]\n"
	if n := of(nodes); n != 2 {
		t.Errorf("two nodes alike have %d layers", n)
	}
	if n := of(nodes + "[release.701.roles]\none = \"two\"\n"); n != 3 {
		t.Errorf("with a release that replaces a role there are %d layers", n)
	}
}

// TestMirrorAt: the mirror is where the caller says, or the site file, or with the state of this host.
func TestMirrorAt(t *testing.T) {
	c := &control.Session{Register: register.Register{Dirs: host.Dirs{State: "/state"}}}
	s := &site.Site{Name: "karoo"}
	for _, k := range []struct{ named, apt, want string }{
		{"", "", "/state/mirror"}, {"", "http://deb.example/debian", "/state/mirror"}, {"", "file:///srv/mirror/apt", "/srv/mirror"}, {"/mnt/other", "file:///srv/mirror/apt", "/mnt/other"},
	} {
		s.Mirror.Apt = k.apt
		if at, err := mirrorAt(c, s, k.named); at != k.want || err != nil {
			t.Errorf("%q with apt = %q: %s, %v", k.named, k.apt, at, err)
		}
	}
	s.Mirror.Apt = "file:///srv/debian"
	if _, err := mirrorAt(c, s, ""); problem.Exit(err) != int(problem.Usage) {
		t.Errorf("of an archive that is laid out otherwise: %v", err)
	}
}

// TestStore: a store without layers has none, and nothing is used of it; what is not in it cannot be told of.
func TestStore(t *testing.T) {
	c := &control.Session{Register: register.Register{Dirs: host.Dirs{State: t.TempDir(), Run: t.TempDir()}}}
	if rows, err := List(t.Context(), c); err != nil || len(rows) > 0 {
		t.Errorf("%+v, %v", rows, err)
	}
	all, err := recipes(load(t, karoo+"[node.a]\nid = 11\nroles = [\"one\"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := contents(image.Open(c.Dirs.State), all); err == nil {
		t.Error("it is known what is in layers that are not there")
	}
}
