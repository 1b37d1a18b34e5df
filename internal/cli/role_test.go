package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/problem"
)

// TestRole: role lists, shows and copies the roles that ship with Orrery. A site with a copy has no mistake.
func TestRole(t *testing.T) {
	dir := t.TempDir()
	mustDo(t, os.WriteFile(filepath.Join(dir, "site.toml"), []byte("site.name = \"a\"\nimage.debian.suite = \"bookworm\"\n"+
		"role.front.port = 8080\nrole.\"orrery/chrony\".allow = [\"all\"]\n"+
		"node.one = { id = 1, roles = [\"front\", \"orrery/chrony\"] }\n"), 0o600))
	for _, c := range []struct {
		args   string
		status problem.Kind
		want   []string
	}{
		{"check", problem.Mistake, []string{`role "front" does not exist`}},
		{"role ls", 0, []string{"ROLE", "orrery/nginx ", "Web server"}},
		{"role ls --json", 0, []string{`"name": "orrery/nginx"`, `"required": true`}},
		{"role show orrery/haproxy", 0, []string{"orrery/haproxy: Load balancer", "packages: haproxy\n",
			"[role.\"orrery/haproxy\"]\n# selector of the nodes", "(must be set)\n# backends =\n", "(http, tcp)\nmode = \"http\"\n"}},
		{"role show redis", 0, []string{"secrets:  redis_password\n", "volumes:  redis\n", "listen = [\"*\"]\n"}},
		{"role show redis --json", 0, []string{`"default": "64MiB"`, `"redis-server.service"`}},
		{"role show rediss", problem.Usage, []string{`did you mean "orrery/redis"?`}},
		{"role copy orrery/nginx orrery", problem.Usage, []string{"is reserved for the roles that ship with Orrery"}},
		{"role new orrery", problem.Usage, []string{"is reserved for the roles that ship with Orrery"}},
		{"role copy orrery/nginx ../x", problem.Usage, []string{"not valid"}},
		{"role copy nothing", problem.Usage, []string{`no role "nothing" ships with Orrery`}},
		{"role copy nginx front", 0, []string{"wrote 2 files to " + filepath.Join(dir, "roles/front"), `roles = ["front"]`}},
		{"role copy nginx front", problem.Usage, []string{"role front exists already"}},
		{"role copy postgresql", 0, []string{"wrote 5 files to " + filepath.Join(dir, "roles/postgresql")}},
		{"query vars one", 0, nil},
		{"role show", problem.Usage, []string{"wrong number of arguments"}},
	} {
		var out bytes.Buffer
		status := Run(append([]string{"-C", dir}, strings.Fields(c.args)...), nil, strings.NewReader(""), &out, &out)
		if status != int(c.status) {
			t.Errorf("%s: %d, %s", c.args, status, out.String())
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is not in\n%s", c.args, want, out.String())
			}
		}
	}
}
