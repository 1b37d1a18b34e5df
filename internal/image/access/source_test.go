package access

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/problem"
	"orrery/internal/site"
)

const deb822 = `# of the installer
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates bookworm-backports
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abcd
 -----END PGP PUBLIC KEY BLOCK-----

Types: deb
Enabled: no
URIs: http://off.example/debian
Suites: bookworm
Components: main
`

func hostRoot(t *testing.T, codename string, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	files["etc/os-release"] = "ID=debian\nVERSION_CODENAME=" + codename + "\n"
	for name, text := range files {
		must(t, os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755))
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestSources(t *testing.T) {
	stanzas := map[string]string{"etc/apt/sources.list.d/debian.sources": deb822}
	lines := map[string]string{
		"etc/apt/sources.list": "deb [arch=amd64 signed-by=/k.gpg] http://a/debian bullseye main # x\n#deb http://no/ bullseye main\ndeb-src http://a/debian bullseye main\n" +
			"deb http://a/security bullseye-security main contrib\n",
		"etc/apt/sources.list.d/docker.list": "deb https://download.docker.com/linux/debian bullseye stable\n",
		"etc/apt/sources.list.d/pgdg.list":   "deb http://apt.postgresql.org/pub/repos/apt bullseye-pgdg main\n",
	}
	old := map[string]string{"etc/apt/sources.list": "deb http://a/debian buster main\ndeb http://a/security buster/updates main\n"}
	for name, test := range map[string]struct {
		codename string
		files    map[string]string
		image    site.Image
		mirror   site.Mirror
		want     string
	}{
		"the host's release": {"bookworm", stanzas, site.Image{Suite: "bookworm"}, site.Mirror{},
			"http://mirror.example/debian bookworm main|http://mirror.example/debian bookworm-updates main|http://mirror.example/debian-security bookworm-security main"},
		"another release": {"bookworm", stanzas, site.Image{Suite: "trixie", Components: []string{"main", "non-free"}}, site.Mirror{},
			"http://mirror.example/debian trixie main non-free|http://mirror.example/debian trixie-updates main non-free|http://mirror.example/debian-security trixie-security main non-free"},
		"the moving release": {"bookworm", stanzas, site.Image{Suite: "sid"}, site.Mirror{}, "http://mirror.example/debian sid main"},
		"lines":              {"bullseye", lines, site.Image{Suite: "bullseye"}, site.Mirror{}, "http://a/debian bullseye main|http://a/security bullseye-security main"},
		"the old name of security": {"buster", old, site.Image{Suite: "bookworm"}, site.Mirror{},
			"http://a/debian bookworm main|http://a/security bookworm-security main"},
		"another distribution": {"bookworm", stanzas, site.Image{Suite: "noble"}, site.Mirror{Apt: "http://m/ubuntu", Security: "http://s/ubuntu"},
			"http://m/ubuntu noble main|http://m/ubuntu noble-updates main|http://s/ubuntu noble-security main"},
		"no apt here": {"", map[string]string{}, site.Image{Suite: "bookworm"}, site.Mirror{Apt: "http://m/debian"},
			"http://m/debian bookworm main|http://m/debian bookworm-updates main"},
		"mirrors": {"bookworm", stanzas, site.Image{Suite: "bookworm"}, site.Mirror{Apt: "file:/m", Security: "file:/s"},
			"file:/m bookworm main|file:/m bookworm-updates main|file:/s bookworm-security main"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Sources(hostRoot(t, test.codename, test.files), test.image, test.mirror)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, s := range got {
				s.Key = ""
				lines = append(lines, strings.TrimPrefix(s.line(), "deb "))
			}
			if is := strings.Join(lines, "|"); is != test.want {
				t.Errorf("got  %s\nwant %s", is, test.want)
			}
		})
	}
}

// TestAccess takes over how the host reaches packages, and lets the site's mirrors win.
func TestKeysOfSources(t *testing.T) {
	got, err := Sources(hostRoot(t, "bookworm", map[string]string{"etc/apt/sources.list.d/debian.sources": deb822}), site.Image{Suite: "bookworm"}, site.Mirror{})
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Key != "/usr/share/keyrings/debian-archive-keyring.gpg" || got[2].Key != "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nabcd\n-----END PGP PUBLIC KEY BLOCK-----" {
		t.Errorf("keys %q, %q", got[0].Key, got[2].Key)
	}
}

func TestAccess(t *testing.T) {
	for _, key := range []string{"http_proxy", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"} {
		t.Setenv(key, "http://host/"+key)
	}
	conf := filepath.Join(t.TempDir(), "pip.conf")
	must(t, os.WriteFile(conf, []byte("[global]\ntrusted-host = a\n  b\n[install]\ntimeout = 7\n"), 0o644))
	t.Setenv("PIP_CONFIG_FILE", conf)
	t.Setenv("PIP_DEFAULT_TIMEOUT", "")
	a := OfHost(site.Mirror{})
	for key, want := range map[string]string{
		"http_proxy": "http://host/http_proxy", "PIP_INDEX_URL": "http://host/PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL": "http://host/PIP_EXTRA_INDEX_URL",
		"PIP_TRUSTED_HOST": "a b", "PIP_TIMEOUT": "7",
	} {
		if a.env[key] != want {
			t.Errorf("%s is %q", key, a.env[key])
		}
	}
	a = OfHost(site.Mirror{PyPI: "https://m/simple", Proxy: "http://p:3128", CA: []byte("PEM")})
	if a.env["PIP_INDEX_URL"] != "https://m/simple" || a.env["PIP_EXTRA_INDEX_URL"] != "" || a.env["https_proxy"] != "http://p:3128" ||
		!strings.HasSuffix(string(a.Roots), "PEM") || !strings.Contains(strings.Join(a.Apt, "\n"), `Acquire::http::Proxy "http://p:3128";`) {
		t.Errorf("with a mirror: %v, %v", a.env, a.Apt)
	}
}

func TestNoSourcesForSuite(t *testing.T) {
	_, err := Sources(hostRoot(t, "", map[string]string{}), site.Image{Suite: "bookworm"}, site.Mirror{})
	if problem.Exit(err) != int(problem.Mistake) || !strings.Contains(err.Error(), "[mirror] apt") {
		t.Errorf("got %v", err)
	}
}

// localArchive makes a directory that orrery mirror pull could have made.
func localArchive(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range files {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestLocalMirror: of a mirror on this host, the key and the security updates are found in it; builders copy out of it.
func TestLocalMirror(t *testing.T) {
	dir := localArchive(t, map[string]string{
		"dists/bookworm/Release": "1", "dists/bookworm-security/Release": "2", MirrorKey: "-----BEGIN PGP PUBLIC KEY BLOCK-----",
	})
	m, err := Settle(site.Mirror{Apt: "file://" + dir})
	if err != nil {
		t.Fatal(err)
	}
	found, err := Sources(hostRoot(t, "bookworm", map[string]string{"etc/apt/sources.list.d/debian.sources": deb822}), site.Image{Suite: "bookworm"}, m)
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	for _, s := range found {
		if s.URI != "file://"+dir || !strings.HasPrefix(s.Key, "-----BEGIN PGP") {
			t.Errorf("%+v", s)
		}
	}
	for _, s := range Copied(found) {
		if s.URI != "copy://"+dir {
			t.Errorf("%+v", s)
		}
	}
}

// TestBring: what a scratch sees of a mirror has another name when there is something else in it.
func TestBring(t *testing.T) {
	dir := localArchive(t, map[string]string{"apt/dists/bookworm/Release": "1", "pypi/simple/index.html": ""})
	declared := site.Mirror{Apt: "file://" + dir + "/apt", PyPI: "file://" + dir + "/pypi/simple"}
	first, near, err := Bring(declared)
	if err != nil || len(near) != 2 || first.Security != "" {
		t.Fatal(first, near, err)
	}
	if want := "file://" + InScratch + "/" + near[0].Name; first.Apt != want || near[0].Dir != dir+"/apt" {
		t.Errorf("%s instead of %s: %+v", first.Apt, want, near)
	}
	if err := os.WriteFile(filepath.Join(dir, "apt/dists/bookworm/Release"), []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	if second, _, err := Bring(declared); err != nil || second.Apt == first.Apt || second.PyPI != first.PyPI {
		t.Errorf("%+v after %+v: %v", second, first, err)
	}
	for _, m := range []site.Mirror{{Apt: "file:///nowhere/apt"}, {PyPI: "file:///nowhere/simple"}} {
		if _, _, err := Bring(m); problem.Exit(err) != int(problem.Mistake) {
			t.Errorf("%+v: %v", m, err)
		}
	}
	elsewhere := site.Mirror{Apt: "http://m/apt", PyPI: "http://m/simple"}
	if m, near, err := Bring(elsewhere); err != nil || len(near) != 0 || m.Apt != elsewhere.Apt {
		t.Error(m, near, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
