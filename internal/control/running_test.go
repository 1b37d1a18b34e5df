package control_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/control"
	"orrery/internal/control/nodes"
	"orrery/internal/control/sites"
	"orrery/internal/control/status"
	"orrery/internal/problem"
)

// TestLoadRunning: while the site directory has mistakes or is gone, verbs for running nodes use the
// site as it was last brought up. A site that was never brought up has nothing to use.
func TestLoadRunning(t *testing.T) {
	d := newDesk(t)
	if s, err := control.LoadRunning(d.Session); err != nil || s.Name != "toykat" {
		t.Fatal(s, err)
	}
	whole, err := os.ReadFile(filepath.Join(d.dir, "site.toml"))
	d.must(err)
	d.write("site.toml", string(whole)+"[nodes.web9]\n[nods.x]\n")
	_, err = control.LoadRunning(d.Session)
	d.wantExit(err, problem.Mistake, "site.toml")
	d.write("site.toml", string(whole))
	d.up()

	for what, harm := range map[string]func() (undo func()){
		"mistakes": func() func() {
			d.write("site.toml", string(whole)+"[nodes.web9]\n[nods.x]\n")
			return func() { d.write("site.toml", string(whole)) }
		},
		"gone": func() func() {
			d.must(os.Rename(d.dir, d.dir+"-away"))
			return func() { d.must(os.Rename(d.dir+"-away", d.dir)) }
		},
		"gone, by its name": func() func() {
			d.must(os.Rename(d.dir, d.dir+"-away"))
			before := d.Session.SiteDir
			d.Session.SiteDir = "toykat"
			return func() { d.must(os.Rename(d.dir+"-away", d.dir)); d.Session.SiteDir = before }
		},
	} {
		undo := harm()
		s, err := control.LoadRunning(d.Session)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		r, err := status.Read(t.Context(), d.Session, s, nil)
		if err != nil || len(r.Nodes) != 3 || !r.Nodes[0].IsGood() {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
		if _, err := nodes.Restart(t.Context(), d.Session, s, []string{"web1"}); err != nil {
			t.Errorf("%s: restart: %v", what, err)
		}
		if told := d.watch.text(); !strings.Contains(told, "using the site as it was last brought up") {
			t.Errorf("%s: told was only %s", what, told)
		}
		if what == "mistakes" && !strings.Contains(d.watch.text(), "(and 1 more mistake)") {
			t.Errorf("%s: told was only %s", what, d.watch.text())
		}
		if _, err := d.Session.Load(); err == nil {
			t.Errorf("%s: the declaration could be read", what)
		}
		undo()
	}

	// What is declared later counts only once it is brought up.
	d.write("site.toml", strings.Replace(string(whole), "[node.db]", "[group.late]\nnodes = [\"db\"]\n[node.db]", 1))
	d.up()
	d.write("site.toml", "broken")
	if s, err := control.LoadRunning(d.Session); err != nil || len(s.Nodes) != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	d.write("site.toml", string(whole))
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
	d.write("site.toml", "broken")
	_, err = control.LoadRunning(d.Session)
	d.wantExit(err, problem.Mistake, "site.toml")
}

// TestNamedSite: -C also takes the name of a site that is up.
func TestNamedSite(t *testing.T) {
	d := newDesk(t)
	d.Session.SiteDir = "toykat"
	_, err := d.Session.Load()
	d.wantExit(err, problem.Usage, `"toykat" is neither a directory nor a site that is up on this host`, "orrery ls")
	d.Session.SiteDir = d.dir
	d.up()
	d.Session.SiteDir = "toykat"
	if s, err := d.Session.Load(); err != nil || s.Name != "toykat" {
		t.Errorf("%+v, %v", s, err)
	}
	d.Session.SiteDir = "toycat"
	_, err = d.Session.Load()
	d.wantExit(err, problem.Usage, `"toycat" is neither`, "up on this host: toykat")
	t.Chdir(t.TempDir())
	d.must(os.Mkdir("toykat", 0o755)) // a directory comes first
	d.Session.SiteDir = "toykat"
	_, err = d.Session.Load()
	d.wantExit(err, problem.Mistake, "toykat has no site.toml")
}
