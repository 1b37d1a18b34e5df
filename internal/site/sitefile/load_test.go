package sitefile

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/problem"
	"orrery/internal/site"
)

var update = flag.Bool("update", false, "write the .want files anew")

// siteDir creates a site directory with files, given by relative path.
func siteDir(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// around returns the site directory for testing a file of testdata. A file called …-role-… is the
// role.toml of role x. Any other file is the site.toml next to the roles python, portal, db,
// receptor and stand-in.
func around(name, content string) map[string]string {
	if strings.Contains(name, "-role-") {
		return map[string]string{
			"site.toml": `site.name = "test"
image.debian.suite = "bookworm"
secret.known.generate = 32
node.one = { id = 1, roles = ["x", "y"], requirements = "pins.txt" }
node.two = { id = 2, roles = ["z"] }
`,
			"pins.txt":              "aiokatcp==1.8.0\nAioHTTP==3.9.1\n",
			"roles/x/role.toml":     content,
			"roles/x/setup.sh":      "true\n",
			"roles/x/sub/a.tmpl":    "{{.Node.Name}}\n",
			"roles/y/role.toml":     "services = [\"shared.service\"]\nenv.LEVEL = \"1\"\nfile = [{path = \"/etc/y.conf\", content = \"y\"}]\n",
			"roles/z/role.toml":     "needs.healthy = [\"one\"]\n",
			"roles/x-sim/role.toml": "",
		}
	}
	return map[string]string{
		"site.toml":                content,
		"requirements/good.txt":    "# pinned\naiokatcp==1.8.0 \\\n  --hash=sha256:00\nnumpy[extra]==1.26 ; python_version > \"3\" --hash=sha256:11\n",
		"requirements/bad.txt":     "aiokatcp>=1.0\n\n-r other.txt\nnumpy==1.2\nNumPy==1.3\n-i http://x\n",
		"certs/ca.pem":             "PEM",
		"images/root.tar.zst":      "x",
		"images/cloud.qcow2":       "x",
		"images/bare.img":          "x",
		"roles/python/role.toml":   "apt = [\"python3\"]\n",
		"roles/portal/role.toml":   "needs = { roles = [\"python\"], healthy = [\"role=receptor\"] }\npip = [\"aiokatcp\"]\n",
		"roles/receptor/role.toml": "needs.roles = [\"python\"]\n",
		"roles/stand-in/role.toml": "",
		"roles/tuned/role.toml": `param = [{name = "port", type = "int", default = 5432, doc = "the port that clients use"},
	{name = "mode", values = ["fast", "safe"], default = "safe"}, {name = "peers", type = "list", check = "[a-z]+[0-9]*"},
	{name = "cache", type = "size", default = "64MiB"}, {name = "vip", type = "address"}]
`,
		"roles/access/role.toml":    "file = [{path = \"/root/.ssh/authorized_keys\", content = \"\"}]\n",
		"base/site.toml":            baseSite,
		"base/roles/tool/role.toml": "",
		"broken/site.toml":          "site.name = \"broken\"\n\n[node\n",
		"cycle/site.toml":           "extends = \"..\"\nsite.name = \"cycle\"\n",
		"roles/db/role.toml":        "volume = [{name = \"pgdata\", path = \"/var/lib/postgresql\"}]\n",
	}
}

// baseSite is a site file that others extend.
const baseSite = `[site]
name = "prod"

[image.debian]
suite = "bookworm"

[host.sv1]
[host.sv2]
address = "root@10.8.1.2"

[network.cam]
subnet = "10.8.67.0/24"

[node.one]
id = 1
host = "sv1"
roles = ["tool"]

[node."many{0..3}"]
id = 10
host = "sv2"
cpus = 2

[group.all]
nodes = ["one", "many*"]
`

func TestFiles(t *testing.T) {
	paths, err := filepath.Glob("testdata/*valid-*.toml")
	if err != nil || len(paths) == 0 {
		t.Fatal("no testdata", err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".toml")
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			dir := siteDir(t, around(name, string(content)))
			_, err = Load(dir)
			if strings.HasPrefix(name, "valid-") {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatal("nothing is wrong with it")
			}
			if problem.ExitCode(err) != int(problem.Mistake) {
				t.Errorf("exit status %d", problem.ExitCode(err))
			}
			got := strings.ReplaceAll(err.Error(), dir, "DIR") + "\n"
			want := strings.TrimSuffix(path, ".toml") + ".want"
			if *update {
				if err := os.WriteFile(want, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			expected, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(expected) {
				t.Errorf("got:\n%swant:\n%s", got, expected)
			}
		})
	}
}

// mustLoad returns the site of a site.toml.
func mustLoad(t testing.TB, content string) *site.Site {
	t.Helper()
	s, err := Load(siteDir(t, around("valid", content)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNoSiteFile(t *testing.T) {
	_, err := Load(t.TempDir())
	var list problem.List
	if !errors.As(err, &list) || len(list) != 1 || !strings.Contains(list[0].Cure, "orrery init") {
		t.Error(err)
	}
}
