package sitefile

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"orrery/internal/site/inventory"
	"orrery/internal/site/selector"
	"orrery/internal/tree"
)

// FuzzLoad checks that no site.toml and no role.toml makes Load panic, and that a site without
// mistakes is usable.
func FuzzLoad(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*valid-*.toml")
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		if strings.Contains(path, "-role-") {
			f.Add([]byte(around("-role-", "")["site.toml"]), content)
		} else {
			f.Add(content, []byte("needs.healthy = [\"role=receptor\"]"))
		}
	}
	f.Fuzz(func(t *testing.T, siteToml, roleToml []byte) {
		// The fuzzer does not detect an endless loop.
		defer time.AfterFunc(10*time.Second, func() { panic(fmt.Sprintf("no end with %q %q", siteToml, roleToml)) }).Stop()
		l := newLoader(nowhere())
		var role roleFile
		if l.decode(l.report.roleFile("x"), roleToml, &role) {
			l.site.Roles = append(l.site.Roles, l.roleOf("x", &role, map[string][]byte{"setup.sh": nil}))
		}
		l.load(siteToml)
		for _, p := range l.report.list() {
			if p.What == "" || p.Error() == "" {
				t.Errorf("%#v", p)
			}
		}
		if len(l.report.mistakes) == 0 && len(l.site.Nodes) < 100 {
			inventory.JSON(l.site)
			if _, err := selector.Select(l.site, "all"); err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzImportINI checks that the result of an import is a valid site file that lacks only roles.
func FuzzImportINI(f *testing.F) {
	content, err := os.ReadFile("testdata/karoo.ini")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(content))
	f.Add("[a]\nip=10.0.0.1/8, 10.0.0.2\nip_x = 10.0.0.1\nnetmask=255.0.255.0\ngateway=10.0.0.1\nctid=5\nhost_server=b\n[b]\n[B.c]\nroles=A_b\nram=1e5\n")
	f.Fuzz(func(t *testing.T, text string) {
		// The fuzzer does not detect an endless loop.
		defer time.AfterFunc(10*time.Second, func() { panic("no end with " + strconv.Quote(text)) }).Stop()
		made, err := ImportINI(strings.NewReader(text), "hosts.ini", "")
		if err != nil {
			return
		}
		l := newLoader(nowhere())
		l.load(made.Content)
		for _, p := range l.report.list() {
			unknownRole := strings.HasPrefix(p.What, "role ") && strings.HasSuffix(p.What, " does not exist")
			if !unknownRole && !strings.HasPrefix(p.What, "and ") {
				t.Errorf("%v in\n%s", p, made.Content)
			}
		}
	})
}

// someDirectory is a site directory with a few files.
var someDirectory = sync.OnceValue(func() *tree.Root {
	root, err := tree.OpenBeneath("testdata")
	if err != nil {
		panic(err)
	}
	return root
})

func nowhere() *directory {
	return &directory{path: "/nowhere", home: "/nowhere", tree: someDirectory(), contents: newContents()}
}
