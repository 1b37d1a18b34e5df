package sitefile

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/roles"
)

const usesShipped = `site.name = "x"
image.debian.suite = "bookworm"
role."orrery/chrony".servers = ["ntp.lan"]
role."orrery/dnsmasq".cache = 5
node.one = { id = 1, roles = ["own"] }
node.two = { id = 2, roles = ["orrery/prometheus-node-exporter"] }
group.all.nodes = ["*"]
group.all.role."orrery/chrony".allow = ["10.0.0.0/8"]
`

// TestShippedRoles: the roles that ship with Orrery and that the site names are read from the program, those that
// its roles need too, and those that it only sets parameters of.
func TestShippedRoles(t *testing.T) {
	dir := siteDir(t, map[string]string{"site.toml": usesShipped,
		"roles/own/role.toml": "needs.roles = [\"orrery/nginx\"]\n"})
	s, err := Load(dir)
	must(t, err)
	want := []string{"orrery/chrony", "orrery/dnsmasq", "orrery/nginx", "orrery/prometheus-node-exporter", "roles/own"}
	if got := roleNames(s); !slices.Equal(got, want) {
		t.Errorf("the roles are %v", got)
	}
	if got := s.UnusedRoles(); !slices.Equal(got, []string{"orrery/chrony", "orrery/dnsmasq"}) {
		t.Errorf("unused: %v", got)
	}
	if r, _ := s.Role("orrery/nginx"); r == nil || !slices.Contains(r.Services, "nginx.service") {
		t.Errorf("%+v", r)
	}
}

// TestCopiedShippedRoles: a copy of a site directory, as hosts store it for a release, has the shipped roles. It
// is read with those, not with the ones of the program that reads it, and with no others.
func TestCopiedShippedRoles(t *testing.T) {
	dir := siteDir(t, map[string]string{"site.toml": usesShipped,
		"roles/own/role.toml": "needs.roles = [\"orrery/nginx\"]\n"})
	s, err := Load(dir)
	must(t, err)
	text, _, err := Text(dir)
	must(t, err)
	for name, copied := range map[string]func(dir, to string) (*site.Site, error){"whole": Copy, "text": CopyText} {
		to := filepath.Join(t.TempDir(), name)
		_, err = copied(dir, to)
		must(t, err)
		again, err := LoadStamped(to, dir, nil)
		must(t, err)
		if !reflect.DeepEqual(again, s) {
			t.Errorf("the copy is\n%+v\nand not\n%+v", again, s)
		}
		file := ".shipped_roles/orrery/nginx/role.toml"
		role, err := os.ReadFile(filepath.Join(to, file))
		must(t, err)
		if string(role) != string(roles.Files("orrery/nginx")["role.toml"]) || string(text[file]) != string(role) {
			t.Errorf("%s is\n%s", file, role)
		}

		must(t, os.WriteFile(filepath.Join(to, file), []byte("description = \"of an older program\"\n"), 0o600))
		if again, err = LoadCopy(to, dir); err != nil {
			t.Fatal(err)
		}
		if r, _ := again.Role("orrery/nginx"); r.Description != "of an older program" || len(r.Services) > 0 {
			t.Errorf("the role of the copy is %+v", r)
		}
		must(t, os.RemoveAll(filepath.Join(to, ".shipped_roles/orrery/nginx")))
		if _, err = LoadStamped(to, dir, nil); err == nil || !strings.Contains(err.Error(), `role "orrery/nginx" does not exist`) {
			t.Errorf("without the role: %v", err)
		}
	}
}

// TestHostileShippedRoles: a copy from a stranger cannot name files outside of the directory of its shipped
// roles, and a site directory cannot replace those of the program.
func TestHostileShippedRoles(t *testing.T) {
	stolen := map[string]string{
		"site.toml": "site.name = \"x\"\nimage.debian.suite = \"bookworm\"\n" +
			"node.one = { id = 1, roles = [\"orrery/../../secret\", \"orrery/link\"] }\n",
		"secret/role.toml": "description = \"hunter2\"\n", "../away/role.toml": "",
		".shipped_roles/orrery/x/role.toml": "",
	}
	dir := siteDir(t, stolen)
	must(t, os.Symlink("../../../away", filepath.Join(dir, ".shipped_roles/orrery/link")))
	_, err := LoadStamped(dir, t.TempDir(), nil)
	if err == nil || !strings.Contains(err.Error(), `role "orrery/../../secret" does not exist`) ||
		!strings.Contains(err.Error(), `role "orrery/link" does not exist`) {
		t.Error(err)
	}

	for _, where := range []string{".shipped_roles/orrery/nginx/role.toml", "../shared/orrery/nginx/role.toml"} {
		s, err := Load(siteDir(t, map[string]string{
			"site.toml": "site.name = \"x\"\nsite.roles_path = \".\"\nimage.debian.suite = \"bookworm\"\n" +
				"node.one = { id = 1, roles = [\"orrery/nginx\"] }\n", where: "description = \"mine\"\n"}))
		must(t, err)
		if r, _ := s.Role("orrery/nginx"); r.Description == "mine" {
			t.Errorf("%s replaces a shipped role", where)
		}
	}
	dir = siteDir(t, map[string]string{"shared/orrery/role.toml": "",
		"site.toml": "site.name = \"x\"\nsite.roles_path = \"shared\"\nimage.debian.suite = \"bookworm\"\n" +
			"node.one = { id = 1, roles = [\"orrery\"] }\n"})
	if _, err = Load(dir); err == nil || !strings.HasPrefix(err.Error(), "shared/orrery: roles named orrery/… ship with Orrery") {
		t.Error(err)
	}
	_, err = Load(siteDir(t, map[string]string{"site.toml": usesShipped, "roles/own/role.toml": "",
		"roles/orrery/nginx/role.toml": "description = \"mine\"\n"}))
	if problem.ExitCode(err) != int(problem.Mistake) ||
		!strings.HasPrefix(err.Error(), "roles/orrery: roles named orrery/… ship with Orrery") {
		t.Error(err)
	}
}

// TestShippedRole: a role is found by its name, with or without "orrery/".
func TestShippedRole(t *testing.T) {
	for _, name := range []string{"nginx", "orrery/nginx"} {
		if r, err := ShippedRole(name); err != nil || r.Name != "orrery/nginx" {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	for name, cure := range map[string]string{
		"postgres": `did you mean "orrery/postgresql"?`, "orrery/ngnix": `did you mean "orrery/nginx"?`,
		"": "orrery role ls", ".": "orrery role ls", "../roles": "orrery role ls", "orrery/orrery/nginx": "orrery role ls",
		"zzzzzzzzzz": "orrery role ls",
	} {
		if _, err := ShippedRole(name); problem.ExitCode(err) != int(problem.Usage) || !strings.Contains(err.Error(), cure) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
