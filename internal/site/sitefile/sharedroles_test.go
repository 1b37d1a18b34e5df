package sitefile

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/site"
)

// sharing returns a site directory beside a directory of shared roles.
func sharing(t *testing.T, siteFile string, files map[string]string) string {
	t.Helper()
	all := map[string]string{"site/site.toml": "[site]\nname = \"x\"\nroles_path = \"../shared\"\n" +
		"[image.debian]\nsuite = \"bookworm\"\n" + siteFile}
	for name, content := range files {
		all[name] = content
	}
	return filepath.Join(siteDir(t, all), "site")
}

func roleNames(s *site.Site) (names []string) {
	for i := range s.Roles {
		names = append(names, s.Roles[i].Dir)
	}
	slices.Sort(names)
	return names
}

// TestSharedRoles: the roles that a site uses and does not have are read from roles_path, with those
// that they need. Its own roles come first, and unused roles are not read.
func TestSharedRoles(t *testing.T) {
	dir := sharing(t, `[node.one]
id = 1
roles = ["web", "own"]
simulated_by = "fake"
[release.700.roles]
web = "web2"
`, map[string]string{
		"site/roles/own/role.toml":    "description = \"mine\"\nneeds.roles = [\"base\"]\n",
		"shared/own/role.toml":        "wrong = 1\n",
		"shared/base/role.toml":       "",
		"shared/web/role.toml":        "needs.roles = [\"tls\"]\nfile = [{ path = \"/x\", source = \"sub/x\" }]\n",
		"shared/web/sub/x":            "x",
		"shared/web2/role.toml":       "",
		"shared/tls/role.toml":        "file = [{ path = \"/y\", source = \"y\" }]\n",
		"shared/common/y":             "y",
		"shared/fake/role.toml":       "",
		"shared/unused/role.toml":     "nonsense",
		"shared/unused/node_modules":  "",
		"shared/.git/objects/ab/cdef": "",
	})
	must(t, os.Symlink("../common/y", filepath.Join(dir, "../shared/tls/y")))
	s, err := Load(dir)
	must(t, err)
	want := []string{"../shared/base", "../shared/fake", "../shared/tls", "../shared/web", "../shared/web2", "roles/own"}
	if got := roleNames(s); !slices.Equal(got, want) {
		t.Errorf("the roles are %v", got)
	}
	if r, _ := s.Role("own"); r.Description != "mine" {
		t.Errorf("the site's own role is %+v", r)
	}

	to := filepath.Join(t.TempDir(), "copy")
	_, err = Copy(dir, to)
	must(t, err)
	must(t, os.RemoveAll(filepath.Join(dir, "../shared")))
	for _, home := range []string{dir, to} {
		copied, err := LoadStamped(to, home, nil)
		must(t, err)
		if !reflect.DeepEqual(copied, s) {
			t.Errorf("the copy is\n%+v\nand not\n%+v", copied, s)
		}
	}
	if _, err := Load(dir); err == nil || !strings.HasPrefix(err.Error(), "site.toml:3: roles_path") {
		t.Errorf("without the directory: %v", err)
	}
}

// TestWrongSharedRoles: mistakes in shared roles have their file and line. Nothing is read that is no
// role, or to which a link leads out of the directory.
func TestWrongSharedRoles(t *testing.T) {
	const node = "[node.one]\nid = 1\nroles = [\"web\"]\n"
	for want, files := range map[string]map[string]string{
		"../shared/web/role.toml:2: unknown key": {"shared/web/role.toml": "\nsevices = []\n"},
		`role "web" does not exist`:              {"shared/web/README": "no role"},
		`"web" does not exist`:                   {"shared/other/role.toml": ""},
		"../shared/web/link: it points outside the site directory": {"shared/web/role.toml": "",
			"secret": "hunter2", "shared/web/link": "-> ../../secret"},
		"../shared/web/pipe: it is not a file": {"shared/web/role.toml": "", "shared/web/pipe": "| "},
		`source = "y" does not exist in ../shared/web`: {
			"shared/web/role.toml": "file = [{ path = \"/y\", source = \"y\" }]\n"},
	} {
		plain, special := map[string]string{"shared/x": ""}, map[string]string{}
		for name, content := range files {
			if strings.HasPrefix(content, "-> ") || strings.HasPrefix(content, "| ") {
				special[name] = content
			} else {
				plain[name] = content
			}
		}
		dir := sharing(t, node, plain)
		for name, content := range special {
			if to, link := strings.CutPrefix(content, "-> "); link {
				must(t, os.Symlink(to, filepath.Join(dir, "..", name)))
			} else {
				must(t, unix.Mkfifo(filepath.Join(dir, "..", name), 0o600))
			}
		}
		_, err := Load(dir)
		if problem.ExitCode(err) != int(problem.Mistake) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v, not %s", err, want)
		}
	}
}
