package layers

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/apply"
	"orrery/internal/apply/local"
	"orrery/internal/control"
	"orrery/internal/control/here"
	"orrery/internal/engine"
	"orrery/internal/engine/fake"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/site/spec"
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

// TestRecipes: a mirror has the layers of the site, its releases and its twins. Each occurs once,
// after the layers that it needs.
func TestRecipes(t *testing.T) {
	of := func(text string) int {
		t.Helper()
		all, err := allRecipes(load(t, text))
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

// TestMirrorAt: the mirror is in the directory that the caller names, or the site file, or in the
// state of this host.
func TestMirrorAt(t *testing.T) {
	c := &control.Session{Dirs: host.Dirs{State: "/state"}}
	s := &site.Site{Name: "karoo"}
	for _, k := range []struct{ named, apt, want string }{
		{"", "", "/state/mirror"}, {"", "http://deb.example/debian", "/state/mirror"},
		{"", "file:///srv/mirror/apt", "/srv/mirror"}, {"/mnt/other", "file:///srv/mirror/apt", "/mnt/other"},
	} {
		s.Mirror.Apt = k.apt
		if at, err := mirrorAt(c, s, k.named); at != k.want || err != nil {
			t.Errorf("%q with apt = %q: %s, %v", k.named, k.apt, at, err)
		}
	}
	s.Mirror.Apt = "file:///srv/debian"
	if _, err := mirrorAt(c, s, ""); problem.ExitCode(err) != int(problem.Usage) {
		t.Errorf("of an archive that is laid out otherwise: %v", err)
	}
}

// TestStore: an empty store lists, removes and verifies nothing.
func TestStore(t *testing.T) {
	c := &control.Session{Dirs: host.Dirs{State: t.TempDir(), Run: t.TempDir()}}
	if rows, err := List(t.Context(), c); err != nil || len(rows) > 0 {
		t.Errorf("%+v, %v", rows, err)
	}
	all, err := allRecipes(load(t, karoo+"[node.a]\nid = 11\nroles = [\"one\"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := contents(image.Open(c.Dirs.State), all); err == nil {
		t.Error("it is known what is in layers that are not there")
	}
}

// open is a machine that anybody may change, with a fake engine.
type open struct {
	here.Machine
	engine *fake.Engine
	dirs   host.Dirs
}

func (open) Allowed() error { return nil }

func (m open) Host(name, key string, secrets apply.Secrets) apply.Host {
	return local.ThisMachine(name, key, m.dirs, map[string]engine.Engine{"lxc": m.engine}, secrets).Host
}

// TestUsed: a layer of a node is used, and so are the layers below it. Only the other layers can be
// removed.
func TestUsed(t *testing.T) {
	m := open{engine: fake.New(), dirs: host.Dirs{State: t.TempDir(), Run: t.TempDir()}}
	c := &control.Session{Dirs: m.dirs, Machine: m}
	keep := func(digest, base string) {
		t.Helper()
		text, err := json.Marshal(image.Record{Digest: digest, Title: digest, Base: base})
		if err == nil {
			err = os.MkdirAll(filepath.Join(m.dirs.State, "store", digest, "tree"), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(m.dirs.State, "store", digest, "layer.json"), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	keep("ba5e", "")
	keep("face", "ba5e")
	keep("dead", "ba5e")
	if err := m.engine.Create(t.Context(), &spec.Node{Site: "karoo", ID: 11, Name: "web", Engine: "lxc", Base: "ba5e",
		Layer: "face"}); err != nil {
		t.Fatal(err)
	}
	rows, err := List(t.Context(), c)
	if err != nil || len(rows) != 3 {
		t.Fatalf("%+v, %v", rows, err)
	}
	for _, r := range rows {
		if r.Used != (r.Digest != "dead") {
			t.Errorf("%s: used is %v", r.Digest, r.Used)
		}
	}
	text, err := json.Marshal(rows[0])
	if err != nil || strings.Contains(string(text), "Used\"") || !strings.Contains(string(text), `"digest":"ba5e"`) {
		t.Errorf("as JSON: %s, %v", text, err)
	}
	gone, err := Remove(t.Context(), c)
	if err != nil || len(gone) != 1 || gone[0].Digest != "dead" {
		t.Errorf("gone are %+v, %v", gone, err)
	}
	wrong := map[string]error{}
	if err := Verify(t.Context(), c, nil, nil, func(_, digest string, err error) { wrong[digest] = err }); err != nil ||
		len(wrong) != 2 || wrong["face"] == nil {
		t.Errorf("told was of %v, %v", wrong, err)
	}
}
