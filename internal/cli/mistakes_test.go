package cli

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"orrery/examples"
)

// planted are mistakes as users make them: each in one example, in one file, with what the message must
// have: the file and line, what is wrong, and the cure.
var planted = []struct{ example, file, old, text, want string }{
	{"slurm", "site.toml", `subnet  =`, `subent  =`, `site\.toml:7: .*subent.*subnet`},
	{"slurm", "site.toml", `"10.8.95.1"`, `"10.8.94.1"`, `site\.toml:\d+: .*gateway.*10\.8\.95\.0/24`},
	{"slurm", "site.toml", `"orrery/slurmd"`, `"orrery/slurm-d"`, `site\.toml:\d+: .*slurm-d.*orrery/slurmd`},
	{"slurm", "site.toml", `"512MiB"`, `"512Mib"`, `site\.toml:\d+: .*512Mib.*MiB`},
	{"slurm", "site.toml", "id     = 11", "id     = 10", `site\.toml:\d+: .*id.*10`},
	{"slurm", "site.toml", `[node.head]`, `[node.head`, `site\.toml:\d+: `},
	{"slurm", "site.toml", `generate = 64`, `generate = "64"`, `site\.toml:\d+: .*generate`},
	{"slurm", "site.toml", `[secret.munge_key]`, `[secret.mungekey]`, `secret "munge_key" is not declared`},
	{"postgres", "site.toml", `databases = ["app:app"]`, `databases = "app"`, `site\.toml:\d+: .*databases.*list`},
	{"postgres", "site.toml", `databases = ["app:app"]`, `databases = ["App"]`, `site\.toml:\d+: .*App`},
	{"postgres", "site.toml", `[role."orrery/postgresql"]`, `[role."orrery/postgres"]`, `site\.toml:\d+: .*orrery/postgres".*"orrery/postgresql"`},
	{"postgres", "roles/proxy/role.toml", `["role=orrery/postgresql"]`, `["role=master"]`, `role\.toml:\d+: .*master`},
	{"postgres", "roles/proxy/haproxy.cfg.tmpl", `{{.Name}}`, `{{.Namee}}`, `haproxy\.cfg\.tmpl:17: .*no field Namee .*"Name"`},
	{"postgres", "roles/proxy/haproxy.cfg.tmpl", `{{- end}}`, ``, `haproxy\.cfg\.tmpl:\d+: .*add {{end}}`},
	{"slurm", "roles/users/role.toml", `"list"`, `"lits"`, `role\.toml:\d+: .*lits.*list`},
	{"postgres", "roles/dumps/role.toml", `source = "dump"`, `source = "dmp"`, `role\.toml:\d+: .*dmp`},
	{"postgres", "roles/dumps/role.toml", `when = "active"`, `when = "always"`, `role\.toml:\d+: .*always.*active`},
	{"epics", "site.toml", `"requirements/2026.txt"`, `"requirements/2027.txt"`, `site\.toml:\d+: .*2027\.txt`},
	{"epics", "requirements/2025.txt", "softioc==4.6.1", "softioc>=4.6.1", `2025\.txt:\d+: .*softioc`},
	{"epics", "roles/ioc/role.toml", `"ioc-sim"`, `"ioc-simulator"`, `role\.toml:\d+: .*ioc-simulator`},
}

// TestMistakes: each planted mistake is reported with its file and line, and once.
func TestMistakes(t *testing.T) {
	for _, m := range planted {
		t.Run(m.example+" "+m.text, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), m.example)
			from, err := fs.Sub(examples.Files, m.example)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(dir, from); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, m.file)
			text, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(text), m.old) {
				t.Fatalf("%s has no %q (%v)", m.file, m.old, err)
			}
			if err := os.WriteFile(file, []byte(strings.Replace(string(text), m.old, m.text, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			status := Run([]string{"-C", dir, "check"}, nil, strings.NewReader(""), &out, &out)
			if status != 3 || !regexp.MustCompile(m.want).MatchString(out.String()) {
				t.Errorf("status %d, %swant %q", status, out.String(), m.want)
			}
			t.Log(out.String())
		})
	}
}
