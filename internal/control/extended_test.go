package control_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/control"
	"orrery/internal/control/backups"
	"orrery/internal/control/sites"
)

const extendingLab = `extends = ".."
remove = ["node.web{1..2}"]

[site]
name = "lab"

[network.lan]
subnet  = "10.99.2.0/24"
gateway = "10.99.2.1"

[node.web1]
id    = 21
roles = ["web"]
`

// TestExtendedSite: a site whose file extends another works from its own directory. Its releases and what
// the host has recorded include what they had from the other directory.
func TestExtendedSite(t *testing.T) {
	d := newDesk(t)
	d.write("lab/site.toml", extendingLab)
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

// TestRestoreExtendedSite: a backup has what the site had from the other directory, so it can be restored
// anywhere, and backed up there.
func TestRestoreExtendedSite(t *testing.T) {
	take := func(d *desk) string {
		to := filepath.Join(t.TempDir(), "backups") + "/"
		_, err := backups.Take(t.Context(), d.Session, nil, to, backups.Options{})
		d.must(err)
		return to
	}
	source := diskDesk(t)
	source.write("lab/site.toml", extendingLab)
	source.SiteDir = filepath.Join(source.dir, "lab")
	source.up()
	where := take(source)

	for range 2 { // the second time from a backup of what was restored
		d := elsewhere(t)
		dir := filepath.Join(d.dir, "restored", "lab")
		made, err := backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{Dir: dir})
		d.must(err)
		if made.Site.Name != "lab" {
			t.Errorf("restored was %+v", made)
		}
		d.SiteDir = dir
		d.wantNodes("db none running healthy, web1 none running healthy")
		if r, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{}); err != nil || r != nil {
			t.Errorf("an up after it: %+v, %v", r, err)
		}
		if text, err := os.ReadFile(filepath.Join(dir, ".extends/site.toml")); err != nil || string(text) != toykat {
			t.Errorf("the other site file is %q, %v", text, err)
		}
		if _, err := backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{Dir: dir}); err == nil ||
			strings.Contains(err.Error(), "differs from the backup") {
			t.Errorf("once more: %v", err)
		}
		where = take(d)
	}
}
