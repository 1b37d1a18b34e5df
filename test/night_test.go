package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNight: while the site file has a mistake, or the site directory is gone, all verbs for running
// nodes work as the site was last brought up, and say so in one line. Verbs that need the
// declaration refuse.
func TestNight(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-night", `
[network.lan]
subnet = "10.99.12.0/24"
[image.debian]
suite = "bookworm"
[node.db]
id = 11
roles = ["db"]
[node.web]
id = 12
[group.all]
nodes = ["*"]
`, files{"roles/db/role.toml": "[[health]]\ncommand = [\"test\", \"-e\", \"/etc/hostname\"]\n"})
	s.do("up")
	file := filepath.Join(s.dir, "site.toml")
	whole, err := os.ReadFile(file)
	must(t, err)
	from := filepath.Join(t.TempDir(), "f")
	must(t, os.WriteFile(from, []byte("carried"), 0o600))
	dir := s.dir

	verbs := func(what string) {
		s := s.of(t)
		const told = `; using the site as it was last brought up\.\n`
		for _, c := range []struct {
			line string
			want string
		}{
			{"status", "db .*healthy"},
			{"status --probe group=all", "web .*running"},
			{"exec role=db -- cat /etc/hostname", "db"},
			{"shell web -- hostname", "web"},
			{"stop web", ""},
			{"start web", ""},
			{"restart --hard web", ""},
			{"cp " + from + " web:/root/f", ""},
			{"shell web -- cat /root/f", "carried"},
			{"logs db", ""},
			{"journal", "orrery .*restart --hard web"},
			{"graph", "<svg"},
		} {
			r := s.run(strings.Fields(c.line)...).want(0, c.want, told)
			if strings.Count(r.errs, "using the site as it was last brought up") != 1 {
				t.Errorf("%s: %s: it says so more than once:\n%s", what, c.line, r.errs)
			}
		}
		for _, line := range []string{"up", "plan", "check", "stage --release 700"} {
			if r := s.run(strings.Fields(line)...); r.status != 3 && r.status != 2 {
				t.Errorf("%s: %s ended with %d\n%s%s", what, line, r.status, r.out, r.errs)
			}
		}
	}

	must(t, os.WriteFile(file, append(whole, "[nodes.typo]\nid = 9\n"...), 0o600))
	s.run("status").want(0, `site.toml:\d+: .*nodes`)
	verbs("a mistake")
	must(t, os.WriteFile(file, whole, 0o600))

	// By its name, from anywhere, and with the directory gone.
	s.dir = s.name
	s.run("status").want(0, "db .*healthy")
	must(t, os.Rename(dir, dir+"-away"))
	verbs("gone")
	must(t, os.Rename(dir+"-away", dir))
	s.run("status").want(0, "db .*healthy")
	s.dir = "it-nigth"
	s.run("status").want(2, `"it-nigth" is neither a directory nor a site that is up on this host`, "it-night")
	s.dir = dir
	s.do("down")
}
