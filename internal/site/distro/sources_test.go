package distro

import (
	"os"
	"path/filepath"
	"slices"
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
		"another release": {"bookworm", stanzas, site.Image{Suite: "trixie", Components: []string{"main", "non-free"}},
			site.Mirror{},
			"http://mirror.example/debian trixie main non-free|http://mirror.example/debian trixie-updates main non-free|http://mirror.example/debian-security trixie-security main non-free"},
		"the moving release": {"bookworm", stanzas, site.Image{Suite: "sid"}, site.Mirror{},
			"http://mirror.example/debian sid main"},
		"lines": {"bullseye", lines, site.Image{Suite: "bullseye"}, site.Mirror{},
			"http://a/debian bullseye main|http://a/security bullseye-security main"},
		"the old name of security": {"buster", old, site.Image{Suite: "bookworm"}, site.Mirror{},
			"http://a/debian bookworm main|http://a/security bookworm-security main"},
		"another distribution": {"bookworm", stanzas, site.Image{Suite: "noble"},
			site.Mirror{Apt: "http://m/ubuntu", Security: "http://s/ubuntu"},
			"http://m/ubuntu noble main universe|http://m/ubuntu noble-updates main universe|http://s/ubuntu noble-security main universe"},
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
			if joined := strings.Join(lines, "|"); joined != test.want {
				t.Errorf("got  %s\nwant %s", joined, test.want)
			}
		})
	}
}

func TestKeysOfSources(t *testing.T) {
	got, err := Sources(hostRoot(t, "bookworm", map[string]string{"etc/apt/sources.list.d/debian.sources": deb822}),
		site.Image{Suite: "bookworm"}, site.Mirror{})
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Key != "/usr/share/keyrings/debian-archive-keyring.gpg" ||
		got[2].Key != "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nabcd\n-----END PGP PUBLIC KEY BLOCK-----" {
		t.Errorf("keys %q, %q", got[0].Key, got[2].Key)
	}
}

func TestNoSourcesForSuite(t *testing.T) {
	_, err := Sources(hostRoot(t, "", map[string]string{}), site.Image{Suite: "bookworm"}, site.Mirror{})
	if problem.ExitCode(err) != int(problem.Mistake) || !strings.Contains(err.Error(), "[mirror] apt") {
		t.Errorf("got %v", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestParagraphs: each paragraph has all of its fields and its text, whatever is between
// paragraphs.
func TestParagraphs(t *testing.T) {
	const text = "# of the installer\nPackage: a\nDescription: first\n second\n .\n third\n\n \n\nPACKAGE: b\nEmpty:\n astray\n\n continued from nothing\nPackage: c"
	var all []string
	for p, text := range Paragraphs(text) {
		all = append(all, p["package"]+"|"+p["description"]+"|"+p["empty"]+"|"+strings.SplitN(text, "\n", 2)[0])
	}
	want := []string{"a|first\nsecond\n\nthird||# of the installer", "b||\nastray|PACKAGE: b",
		"c||| continued from nothing"}
	if !slices.Equal(all, want) {
		t.Errorf("%q", all)
	}
	for p := range Paragraphs(text) {
		if p["package"] != "a" {
			t.Errorf("it goes on after its end: %v", p)
		}
		break
	}
}
