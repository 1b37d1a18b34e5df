package control_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/control/releases"
	"orrery/internal/control/sites"
	"orrery/internal/member"
)

const webRole = `services = ["web.service"]
[[secret]]
name = "key"
owner = "0:0"
[[file]]
path = "/etc/web.conf"
template = "web.conf.tmpl"
owner = "0:0"
[[health]]
command = ["ask"]
timeout = "1s"
within = "1s"
`

// secretDesk brings up a site with a role whose file contains a secret. It returns the site file, and a
// function that returns all changes of the plan as text.
func secretDesk(d *desk) (text string, changes func() string) {
	d.Helper()
	key := filepath.Join(d.TempDir(), "key")
	d.must(os.WriteFile(key, []byte("very-secret"), 0o600))
	text = toykat + "[secret.key]\nfile = \"" + key + "\"\n"
	d.write("site.toml", text)
	d.write("roles/web/role.toml", webRole)
	d.write("roles/web/web.conf.tmpl", "name {{.Node.Name}}\nkey {{secret \"key\"}}\nport 80\n")
	d.up()
	return text, func() string {
		d.Helper()
		_, all, err := sites.Changes(d.Context(), d.Session, nil, sites.PreviewOptions{})
		d.must(err)
		said := ""
		for _, c := range all {
			said += c.Title + ":\n" + strings.Join(c.Lines, "\n") + "\n"
		}
		return said
	}
}

// TestChanges: before a change, its settings, files and packages are shown, and no secret. The former
// content of a file is known for nodes that the last run did not reach, too.
func TestChanges(t *testing.T) {
	d := newDesk(t)
	text, changes := secretDesk(d)
	if said := changes(); said != "" {
		t.Errorf("nothing has changed, but:\n%s", said)
	}
	port := "@@ -1,3 +1,3 @@\n name web2\n key <secret key>\n-port 80\n+port 81\n"
	d.write("site.toml", strings.Replace(text, `roles  = ["web"]`, "roles  = [\"web\"]\nmemory = \"128MiB\"", 1))
	d.write("roles/web/web.conf.tmpl", "name {{.Node.Name}}\nkey {{secret \"key\"}}\nport 81\n")
	d.write("roles/web/role.toml", "apt = [\"nginx\"]\n"+webRole)
	said := changes()
	for _, want := range []string{"node web1:\n", "node web2:\nmemory: none -> 128MiB\n", "+ Debian package nginx\n", port,
		"--- web: file /etc/web.conf\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in\n%s", want, said)
		}
	}
	if strings.Contains(said, "very-secret") || strings.Contains(said, "node db") {
		t.Errorf("shown is\n%s", said)
	}
	_, _, err := sites.Up(t.Context(), d.Session, d.site(), []string{"web1"}, sites.UpOptions{})
	d.must(err)
	d.up()
	d.write("roles/web/web.conf.tmpl", "port 82\n")
	_, _, err = sites.Up(t.Context(), d.Session, d.site(), []string{"web1"}, sites.UpOptions{})
	d.must(err)
	if said = changes(); !strings.Contains(said, "node web2:\n") || !strings.Contains(said, "-port 81\n+port 82\n") {
		t.Errorf("web2 is\n%s", said)
	}
	for _, record := range []string{"declared.json", "declared-before.json"} {
		info, err := os.Stat(filepath.Join(d.dirs.Site("toykat"), record))
		d.must(err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("others can read %s: %v", record, info.Mode())
		}
		d.must(os.WriteFile(filepath.Join(d.dirs.Site("toykat"), record), []byte("{"), 0o600)) // damaged
	}
	if said = changes(); !strings.Contains(said, "web: file /etc/web.conf: changed; its former content is not recorded") {
		t.Errorf("without a record:\n%s", said)
	}
	d.up()
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
	if _, err := os.Stat(filepath.Join(d.dirs.Site("toykat"), "declared-before.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the former record of a site that is down: %v", err)
	}
}

// TestCompareReleases: the difference of two releases shows files, and no secret. Members of the host's
// group learn nothing about files.
func TestCompareReleases(t *testing.T) {
	d := diskDesk(t)
	secretDesk(d)
	_, err := releases.Stage(t.Context(), d.Session, d.site(), nil, releases.StageOptions{Release: 700})
	d.must(err)
	d.write("roles/web/web.conf.tmpl", "key {{secret \"key\"}}\nport 81\n")
	_, err = releases.Stage(t.Context(), d.Session, d.site(), nil, releases.StageOptions{Release: 701})
	d.must(err)
	d.fillLayers(d.machine)
	compare := func() []releases.Difference {
		t.Helper()
		all, err := releases.Compare(t.Context(), d.Session, d.site(), [2]int{700, 701}, nil)
		d.must(err)
		return all
	}
	for _, n := range compare() {
		said := strings.Join(n.Lines, "\n")
		if n.Node == "db" && !n.Same() || n.Node == "web1" && !slices.Contains(n.Lines, "+port 81") ||
			strings.Contains(said, "very-secret") {
			t.Errorf("%s:\n%s", n.Node, said)
		}
	}
	d.Member = &member.Person{}
	for _, n := range compare() {
		if len(n.Lines) > 0 {
			t.Errorf("a member learns of %s: %v", n.Node, n.Lines)
		}
	}
}
