package drift

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/tree"
	"orrery/test/need"
)

// A place is a fake node: two layers, its private layer and its root, all of them directories.
type place struct {
	*testing.T
	dir    string
	layers LayerStack
	first  int
}

// newPlace returns a place with files by path: "layer/path", or "layer/path@" for a link.
func newPlace(t *testing.T, files map[string]string) *place {
	t.Helper()
	need.SameIDs(t)
	p := &place{T: t, dir: t.TempDir(), first: os.Geteuid()}
	for _, dir := range []string{"top", "base", "upper", "root"} {
		p.must(os.Mkdir(filepath.Join(p.dir, dir), 0o755))
	}
	for path, text := range files {
		p.write(path, text)
	}
	var err error
	p.layers, err = OpenLayers([]string{filepath.Join(p.dir, "top"), filepath.Join(p.dir, "base")})
	p.must(err)
	t.Cleanup(p.layers.Close)
	return p
}

func (p *place) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *place) write(path, text string) {
	p.Helper()
	to := filepath.Join(p.dir, strings.TrimSuffix(path, "@"))
	p.must(os.MkdirAll(filepath.Dir(to), 0o755))
	switch {
	case strings.HasSuffix(path, "@"):
		p.must(os.Symlink(text, to))
	case text == "whiteout":
		if err := unix.Mknod(to, unix.S_IFCHR, 0); err != nil {
			p.Skipf("this user cannot make a whiteout: %v", err)
		}
	case text == "directory":
		p.must(os.MkdirAll(to, 0o755))
	default:
		p.must(os.WriteFile(to, []byte(text), 0o644))
	}
}

func (p *place) open(name string) *tree.Root {
	p.Helper()
	root, err := tree.Open(filepath.Join(p.dir, name))
	p.must(err)
	p.Cleanup(func() { root.Close() })
	return root
}

func (p *place) want(all []observe.Drift, err error, want ...string) {
	p.Helper()
	p.must(err)
	var got []string
	for _, d := range all {
		got = append(got, d.String())
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		p.Errorf("found is\n  %s\nnot\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// TestPrograms checks that changes and deletions of files of all layers are found in the private
// layer. It must not report files that are added, unchanged, free, or not programs.
func TestPrograms(t *testing.T) {
	p := newPlace(t, map[string]string{
		"base/usr/bin/tar": "tar", "base/usr/bin/ls": "ls", "base/usr/bin/touched": "same", "base/usr/bin/sh@": "dash",
		"base/usr/bin/link@":       "ls",
		"base/usr/lib/python/a.py": "a", "base/usr/lib/python/b.py": "b", "base/usr/lib/python/__pycache__/a.pyc": "1",
		"base/usr/lib/x.pyc": "1",
		"base/etc/passwd":    "root", "base/usr/share/doc/a": "a", "base/usr/lib/mode": "m", "base/opt/venv/tool": "base's",
		"top/opt/venv/tool": "top's", "top/usr/bin/gone-in-layer": "whiteout", "base/usr/bin/gone-in-layer": "x",
		"top/usr/lib/own": "own", "base/usr/lib/kind": "file",

		"upper/usr/bin/tar": "whiteout", "upper/usr/bin/ls": "LS", "upper/usr/bin/touched": "same",
		"upper/usr/bin/sh@": "bash", "upper/usr/bin/link@": "ls",
		"upper/usr/lib/python": "whiteout", "upper/usr/bin/added": "x", "upper/usr/bin/whiteout-of-nothing": "whiteout",
		"upper/usr/bin/gone-in-layer": "again",
		"upper/etc/passwd":            "changed", "upper/usr/share/doc": "whiteout", "upper/usr/lib/x.pyc": "2",
		"upper/usr/lib/mode":  "m",
		"upper/opt/venv/tool": "base's", "upper/usr/lib/own": "own", "upper/usr/local/new/deep": "x",
		"upper/usr/lib/kind/inside": "x",
	})
	p.must(os.Chmod(filepath.Join(p.dir, "upper/usr/lib/mode"), 0o777))
	all, err := Programs(t.Context(), "web", p.open("upper"), p.layers, IgnoreList{"/usr/share/doc"})
	p.want(all, err,
		"program /usr/bin/tar is gone, not as in its layer",
		"program /usr/bin/ls is changed, not as in its layer",
		"program /usr/bin/sh is changed, not as in its layer",
		"program /usr/lib/python is gone, not as in its layer",
		"program /usr/lib/mode is of mode 0777, not of mode 0644",
		"program /opt/venv/tool is changed, not as in its layer",
		"program /usr/lib/kind is a directory, not as in its layer",
	)
	for _, d := range all {
		if d.Disrupts() != (d.How != observe.Gone) {
			t.Errorf("%v disturbs: %t", d, d.Disrupts())
		}
	}
}

// TestProgramsMany checks that the number of reported changes is limited.
func TestProgramsMany(t *testing.T) {
	files := map[string]string{}
	for n := range maxFound + 50 {
		files[fmt.Sprintf("base/usr/bin/%d", n)], files[fmt.Sprintf("upper/usr/bin/%d", n)] = "x", "y"
	}
	p := newPlace(t, files)
	if all, err := Programs(t.Context(), "web", p.open("upper"), p.layers, nil); err != nil || len(all) != maxFound {
		t.Errorf("%d found: %v", len(all), err)
	}
}

// TestProgramsReplaced checks that a directory of programs that is deleted, or is now a link, is
// reported and not followed.
func TestProgramsReplaced(t *testing.T) {
	p := newPlace(t, map[string]string{"base/usr/bin/ls": "ls", "base/opt/tool": "x", "upper/usr@": "/etc",
		"upper/opt": "whiteout"})
	all, err := Programs(t.Context(), "web", p.open("upper"), p.layers, nil)
	p.want(all, err, "program /usr is a link, not as in its layer", "program /opt is gone, not as in its layer")
}

// TestRestore checks that a path of the layers is restored with all below it, and that the node's
// other files stay.
func TestRestore(t *testing.T) {
	p := newPlace(t, map[string]string{
		"base/usr/bin/tar": "tar", "base/usr/lib/python/a.py": "base's", "top/usr/lib/python/a.py": "top's",
		"base/usr/lib/python/b.py": "b", "base/usr/lib/python/deep/c.py": "c",
		"base/usr/lib/python/gone.py": "x", "top/usr/lib/python/gone.py": "whiteout", "base/usr/bin/sh@": "dash",
		"root/usr/lib/python/mine.py": "mine", "root/usr/lib/python/b.py": "changed by me", "root/usr/bin/sh@": "bash",
		"root/etc/outside": "x",
	})
	p.must(os.Chmod(filepath.Join(p.dir, "base/usr/bin/tar"), 0o755|os.ModeSetuid))
	root := p.open("root")
	for _, path := range []string{"/usr/bin/tar", "/usr/lib/python", "/usr/bin/sh", "/usr/lib/python/b.py"} {
		p.must(p.layers.Restore(t.Context(), root, p.first-os.Geteuid(), path))
	}
	for path, want := range map[string]string{"usr/bin/tar": "tar", "usr/lib/python/a.py": "top's",
		"usr/lib/python/b.py": "b", "usr/lib/python/deep/c.py": "c", "usr/lib/python/mine.py": "mine"} {
		if text, err := os.ReadFile(filepath.Join(p.dir, "root", path)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(p.dir, "root/usr/lib/python/gone.py")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a layer has removed is there: %v", err)
	}
	if says, _ := os.Readlink(filepath.Join(p.dir, "root/usr/bin/sh")); says != "dash" {
		t.Errorf("sh leads to %q", says)
	}
	if info, err := os.Stat(filepath.Join(p.dir, "root/usr/bin/tar")); err != nil || info.Mode()&os.ModeSetuid == 0 {
		t.Errorf("tar is of mode %v", info.Mode())
	}
	if err := p.layers.Restore(t.Context(), root, 0, "/usr/bin/nothing"); err == nil {
		t.Error("what is in no layer was put back")
	}

	// Restore must not remove what the node has put in the place of a directory or a file, and must
	// not follow links of the node.
	p.write("root/usr/lib2@", "/etc")
	p.write("base/usr/lib2/x", "x")
	p.write("base/usr/lib3", "file")
	p.write("root/usr/lib3/mine", "mine")
	if err := p.layers.Restore(t.Context(), root, 0, "/usr/lib3"); err == nil {
		t.Error("a directory of the node was replaced")
	}
	_ = p.layers.Restore(t.Context(), root, 0, "/usr/lib2")
	if _, err := os.Lstat(filepath.Join("/etc/x")); err == nil {
		t.Error("a link of the node led out of it")
	}
}

// TestFiles checks the drift of files that roles write to a node.
func TestFiles(t *testing.T) {
	p := newPlace(t, map[string]string{
		"root/etc/same": "same\n", "root/etc/changed": "other\n", "root/etc/longer": "same\nand more\n",
		"root/etc/mode": "same\n", "root/etc/kind/x": "x",
		"root/etc/link@": "/etc/orrery/files/1", "root/etc/relinked@": "/etc/shadow", "root/etc/owner": "same\n",
		"root/etc/free": "other\n", "root/etc/leads@": "/etc/same",
		"root/etc/passwd": "root:x:0:0::/:\nnobody:x:65534:65534::/:\n", "root/etc/group": "root:x:0:\nnogroup:x:65534:\n",
	})
	p.must(os.Chmod(filepath.Join(p.dir, "root/etc/mode"), 0o666))
	file := func(path, owner string) RoleFile {
		return RoleFile{host.File{Path: path, Content: []byte("same\n"), Owner: owner, Mode: 0o644}, "web"}
	}
	all, err := Files("web", p.open("root"), p.first, []RoleFile{
		file("/etc/same", ""), file("/etc/same", "root:root"), file("/etc/changed", ""), file("/etc/longer", ""),
		file("/etc/mode", ""), file("/etc/kind", ""), file("/etc/gone", ""),
		file("/etc/same/below", ""), file("/etc/leads", ""), file("/etc/owner", "nobody:nogroup"),
		file("/etc/owner", "web:web"), file("/etc/free", ""),
		{host.File{Path: "/etc/link", Link: "/etc/orrery/files/1"}, "web"},
		{host.File{Path: "/etc/relinked", Link: "/etc/orrery/files/2"}, "web"},
	}, IgnoreList{"/etc/free"})
	p.want(all, err,
		"file /etc/changed is changed, not as its role makes it",
		"file /etc/longer is changed, not as its role makes it",
		"file /etc/mode is of mode 0666, not of mode 0644",
		"file /etc/kind is a directory, not as its role makes it",
		"file /etc/gone is gone, not as its role makes it",
		"file /etc/same/below is gone, not as its role makes it",
		"file /etc/leads is a link, not as its role makes it",
		"file /etc/owner is owned by 0:0, not owned by 65534:65534",
		"file /etc/owner is owned by nobody whom the node knows by that name, not owned by web:web",
		"file /etc/relinked is changed, not a link to /etc/orrery/files/2",
	)
}

// TestLaid checks the drift of files that roles have put into the layers, by what the node sees.
func TestLaid(t *testing.T) {
	p := newPlace(t, map[string]string{
		"top/etc/systemd/system/web.service": "unit", "top/etc/gone": "x", "base/srv/same": "same", "base/srv/free": "x",
		"base/srv/kind":                       "x",
		"root/etc/systemd/system/web.service": "UNIT", "root/srv/same": "same", "root/srv/free": "y",
		"root/srv/kind@": "same",
	})
	all, err := LayerFiles(t.Context(), "web", p.open("root"), 0, p.layers, []ManagedFile{
		{"/etc/systemd/system/web.service", "web"}, {"/etc/gone", "web"}, {"/srv/same", "web"}, {"/srv/free", "web"},
		{"/srv/kind", "web"}, {"/srv/removed-by-a-build-step", "web"},
	}, IgnoreList{"/srv/free"})
	p.want(all, err,
		"file /etc/systemd/system/web.service is changed, not as in its layer",
		"file /etc/gone is gone, not as in its layer",
		"file /srv/kind is a link, not as in its layer",
	)
}
