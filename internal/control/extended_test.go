package control_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestExtendedSite: a site whose file extends another works from its own directory. Its releases and what
// the host has recorded include what they had from the other directory.
func TestExtendedSite(t *testing.T) {
	d := newDesk(t)
	d.write("lab/site.toml", `extends = ".."
remove = ["node.web{1..2}"]

[site]
name = "lab"

[network.lan]
subnet  = "10.99.2.0/24"
gateway = "10.99.2.1"

[node.web1]
id    = 21
roles = ["web"]
`)
	d.SiteDir = filepath.Join(d.dir, "lab")
	d.up()
	d.wantNodes("db none running healthy, web1 none running healthy")
	d.stage(700)
	s := d.site()
	if d.Register().IsDeclarationOutdated(s, d.SiteDir) {
		t.Error("what was recorded is outdated at once")
	}

	base := filepath.Join(d.dir, "site.toml")
	later := time.Now().Add(time.Hour)
	d.must(os.Chtimes(base, later, later))
	if !d.Register().IsDeclarationOutdated(s, d.SiteDir) {
		t.Error("a change of the other file is not seen")
	}
	d.write("roles/db/role.toml", "")
	release, err := d.Register().LoadRelease(d.site(), 700)
	d.must(err)
	if r, ok := release.Role("db"); !ok || len(r.Volumes) != 1 || r.Dir != "../roles/db" {
		t.Errorf("the release has the role %+v", r)
	}

	d.write("site.toml", "[")
	d.noted()
	if s := d.running(); s.Key() != "lab" || len(s.Nodes) != 2 {
		t.Errorf("recorded is %+v", s)
	}
	if told := d.noted(); !strings.HasPrefix(told, "notice: ../site.toml:1: ") {
		t.Errorf("told is %q", told)
	}
}
