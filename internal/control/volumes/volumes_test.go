package volumes

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/site/spec"
)

// karoo returns a site of two nodes with a mirrored ledger volume each. Only the volume of db
// exists.
func karoo(t *testing.T) (*control.Session, *site.Site) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"site.toml": `[site]
name = "karoo"
production = true
[network.core]
subnet = "10.99.7.0/24"
[image.base]
suite = "bookworm"
[volume.ledger]
mirror = "/srv/copy"
[node.db]
id = 11
roles = ["ledger"]
[node.web]
id = 12
roles = ["ledger"]
`,
		"roles/ledger/role.toml": "[[volume]]\nname = \"ledger\"\npath = \"/srv/ledger\"\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	s, err := sitefile.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := &control.Session{Dirs: host.Dirs{State: t.TempDir(), Run: t.TempDir()}, SiteDir: dir,
		Confirmer: control.AssumeYes{}}
	write(t, filepath.Join(c.Dirs.Volumes("karoo"), "ledger", "db", "book"), "what was paid")
	return c, s
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestUsed: each directory of a volume is listed once, with its size and the state of its mirror.
func TestUsed(t *testing.T) {
	c, s := karoo(t)
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := (Mirrored{Volume: "ledger", Node: "db", To: "/srv/copy/db", At: at, Problem: "no room"}).Save(c.Dirs,
		"karoo"); err != nil {
		t.Fatal(err)
	}
	f, seen, err := observeHosts(t.Context(), c, s)
	if err != nil {
		t.Fatal(err)
	}
	p, err := findVolumeDirs(c, s, f, seen)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := p.rows(t.Context(), f.All[0])
	if err != nil || len(rows) != 2 {
		t.Fatalf("%+v, %v", rows, err)
	}
	db, web := rows[0], rows[1]
	if db.Node != "db" || !db.There || db.Size.Apparent == 0 || db.Mirror != "/srv/copy/db" || db.Last == nil ||
		!db.Last.At.Equal(at) || db.Last.Problem != "no room" {
		t.Errorf("db: %+v", db)
	}
	if web.Node != "web" || web.There || web.Last != nil || web.Mirror != "/srv/copy/web" {
		t.Errorf("web: %+v", web)
	}
}

// refusing is a Confirmer whose caller never agrees.
type refusing struct{ asked []control.Question }

func (r *refusing) Ask(q control.Question) (bool, error) {
	r.asked = append(r.asked, q)
	return true, problem.New(problem.Refused, "no")
}

// TestAdoptionRefuses: data is not moved while a running or still declared node uses it, and in
// production not without consent.
func TestAdoptionRefuses(t *testing.T) {
	c, s := karoo(t)
	asker := &refusing{}
	c.Confirmer = asker
	n, _ := s.Node("web")
	heir, err := spec.NewBuilder(s).Node(n)
	if err != nil {
		t.Fatal(err)
	}
	a := &adoption{Session: c, site: s, of: apply.AdoptRequest{Former: "db", Heir: *heir},
		all: []apply.Adoption{{Volume: "ledger", As: "ledger"}}}
	if err := a.checkUnused(); problem.ExitCode(err) != int(problem.Refused) ||
		!strings.Contains(err.Error(), "node db still uses volume ledger") {
		t.Errorf("of a node that is declared: %v", err)
	}
	node := observe.Node{Node: *heir, State: observe.Stopped}
	hosts := []observe.Host{{Name: "local", Nodes: []observe.Node{node}}}
	if steps, err := a.destroySteps(hosts); steps != nil || err != nil || len(asker.asked) > 0 {
		t.Errorf("a node that is declared ends: %v, %v", steps, err)
	}
	a.of.Former, hosts[0].Nodes[0].Name = "old", "old"
	if err := a.checkUnused(); err != nil {
		t.Error(err)
	}
	if _, err := a.destroySteps(hosts); problem.ExitCode(err) != int(problem.Refused) || len(asker.asked) != 1 ||
		asker.asked[0].About != control.Production {
		t.Errorf("a node in production ends unasked: %v, %+v", err, asker.asked)
	}
	c.Confirmer = control.AssumeYes{}
	if steps, err := a.destroySteps(hosts); len(steps) == 0 || err != nil {
		t.Errorf("a node that the site file no longer declares does not end: %v", err)
	}
}
