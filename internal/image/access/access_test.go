package access

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/distro"
)

// TestAccess: the host's settings are used, and the site's mirrors override them.
func TestAccess(t *testing.T) {
	for _, key := range []string{"http_proxy", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"} {
		t.Setenv(key, "http://host/"+key)
	}
	conf := filepath.Join(t.TempDir(), "pip.conf")
	must(t, os.WriteFile(conf, []byte("[global]\ntrusted-host = a\n  b\n[install]\ntimeout = 7\n"), 0o644))
	t.Setenv("PIP_CONFIG_FILE", conf)
	t.Setenv("PIP_DEFAULT_TIMEOUT", "")
	a := FromHost(site.Mirror{})
	for key, want := range map[string]string{
		"http_proxy": "http://host/http_proxy", "PIP_INDEX_URL": "http://host/PIP_INDEX_URL",
		"PIP_EXTRA_INDEX_URL": "http://host/PIP_EXTRA_INDEX_URL",
		"PIP_TRUSTED_HOST":    "a b", "PIP_TIMEOUT": "7",
	} {
		if a.env[key] != want {
			t.Errorf("%s is %q", key, a.env[key])
		}
	}
	a = FromHost(site.Mirror{PyPI: "https://m/simple", Proxy: "http://p:3128", CA: []byte("PEM")})
	if a.env["PIP_INDEX_URL"] != "https://m/simple" || a.env["PIP_EXTRA_INDEX_URL"] != "" ||
		a.env["https_proxy"] != "http://p:3128" ||
		!strings.HasSuffix(string(a.Roots), "PEM") ||
		!strings.Contains(strings.Join(a.Apt, "\n"), `Acquire::http::Proxy "http://p:3128";`) {
		t.Errorf("with a mirror: %v, %v", a.env, a.Apt)
	}
}

// localArchive creates a directory that orrery mirror pull could have created.
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

// TestLocalMirror: the key and the security updates of a mirror on this host are found in it.
// Builders copy packages from it.
func TestLocalMirror(t *testing.T) {
	dir := localArchive(t, map[string]string{
		"dists/bookworm/Release": "1", "dists/bookworm-security/Release": "2",
		MirrorKeyFile: "-----BEGIN PGP PUBLIC KEY BLOCK-----",
	})
	m, err := CompleteMirror(site.Mirror{Apt: "file://" + dir})
	if err != nil {
		t.Fatal(err)
	}
	host := localArchive(t, map[string]string{
		"etc/os-release":       "ID=debian\nVERSION_CODENAME=bookworm\n",
		"etc/apt/sources.list": "deb http://mirror.example/debian bookworm main\ndeb http://mirror.example/debian-security bookworm-security main\n",
	})
	found, err := distro.Sources(host, site.Image{Suite: "bookworm"}, m)
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	for _, s := range found {
		if s.URI != "file://"+dir || !strings.HasPrefix(s.Key, "-----BEGIN PGP") {
			t.Errorf("%+v", s)
		}
	}
	for _, s := range WithCopyURLs(found) {
		if s.URI != "copy://"+dir {
			t.Errorf("%+v", s)
		}
	}
}

// TestBring: a mirror has another name in a scratch when its content changes.
func TestBring(t *testing.T) {
	dir := localArchive(t, map[string]string{"apt/dists/bookworm/Release": "1", "pypi/simple/index.html": ""})
	declared := site.Mirror{Apt: "file://" + dir + "/apt", PyPI: "file://" + dir + "/pypi/simple"}
	first, near, err := ForBuild(declared)
	if err != nil || len(near) != 2 || first.Security != "" {
		t.Fatal(first, near, err)
	}
	if want := "file://" + BuildDir + "/" + near[0].Name; first.Apt != want || near[0].Dir != dir+"/apt" {
		t.Errorf("%s instead of %s: %+v", first.Apt, want, near)
	}
	if err := os.WriteFile(filepath.Join(dir, "apt/dists/bookworm/Release"), []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	if second, _, err := ForBuild(declared); err != nil || second.Apt == first.Apt || second.PyPI != first.PyPI {
		t.Errorf("%+v after %+v: %v", second, first, err)
	}
	for _, m := range []site.Mirror{{Apt: "file:///nowhere/apt"}, {PyPI: "file:///nowhere/simple"}} {
		if _, _, err := ForBuild(m); problem.ExitCode(err) != int(problem.Mistake) {
			t.Errorf("%+v: %v", m, err)
		}
	}
	elsewhere := site.Mirror{Apt: "http://m/apt", PyPI: "http://m/simple"}
	if m, near, err := ForBuild(elsewhere); err != nil || len(near) != 0 || m.Apt != elsewhere.Apt {
		t.Error(m, near, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
