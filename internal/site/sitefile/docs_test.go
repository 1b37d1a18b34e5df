package sitefile

import (
	"os"
	"strings"
	"testing"
)

// example returns the first TOML block of a page of the documentation.
func example(t *testing.T, page string) string {
	t.Helper()
	content, err := os.ReadFile("../../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(content), "```toml\n")
	block, _, found := strings.Cut(rest, "\n```")
	if !found {
		t.Fatal("no example")
	}
	return block + "\n"
}

func TestSiteFileOfTheDocumentation(t *testing.T) {
	const pins = "aiokatcp==1.8.0\n"
	s, err := Load(siteDir(t, map[string]string{
		"site.toml": example(t, "site-file.md"), "certs/ca.pem": "", "keys.pub": adaKey, "team.pub": bobKey, "debian-12-genericcloud.qcow2": "",
		"certs/mirror.asc": "-----BEGIN PGP PUBLIC KEY BLOCK-----\n", "requirements/portal.txt": pins,
		"requirements/site.txt": pins,
		"requirements/v7.txt":   pins, "roles/portal/role.toml": "", "roles/receptor/role.toml": "",
		"roles/portal-sim/role.toml": "", "roles/receptor-katcp/role.toml": "",
		"roles/db/role.toml": "volume = [{name = \"pgdata\", path = \"/var/lib/postgresql\"}]\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Nodes) != 66 {
		t.Errorf("%d nodes", len(s.Nodes))
	}
}

func TestRoleFileOfTheDocumentation(t *testing.T) {
	_, err := Load(siteDir(t, map[string]string{
		"site.toml": `site.name = "x"
image.debian.suite = "bookworm"
secret.db_password.generate = 32
node.portal = { id = 1, roles = ["portal"], requirements = "pins.txt" }
node.db = { id = 2, roles = ["db"] }
node.receptor1 = { id = 3, roles = ["receptor"] }
`,
		"pins.txt": "aiokatcp==1.8.0\naiohttp==3.9.1\nasyncpg==0.29.0\n", "roles/python/role.toml": "",
		"roles/db/role.toml":       "",
		"roles/receptor/role.toml": "", "roles/portal/role.toml": example(t, "roles.md"), "roles/portal/portal.py": "",
		"roles/portal/portal.json.tmpl": "{}", "roles/portal/schema.sh": "", "roles/portal-sim/role.toml": "",
	}))
	if err != nil {
		t.Error(err)
	}
}
