package backup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/backup/vault"
	"orrery/internal/engine/nodedir"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/treesync"
)

// pickOf opens a backup to extract files. Its node n has two volumes and an NFS export.
func pickOf(t *testing.T, where string) *Extractor {
	t.Helper()
	v, _, err := vault.Open(where)
	must(t, err)
	t.Cleanup(func() { v.Close() })
	_, m, err := vault.Resolve(v, "")
	must(t, err)
	m.Nodes = []nodedir.Record{{Node: spec.Node{Name: "n", ID: 1, Mounts: []spec.Mount{
		{Volume: "data", Path: "/srv/data"}, {Volume: "inner", Path: "/srv/data/inner/", Shared: true},
		{Volume: "far", Path: "/far", Remote: site.Remote{NFS: "server:/far"}},
	}}}}
	return &Extractor{From: vault.NewPieces(v), Manifest: m, Saw: func(int64) {}, Lacked: map[string]int{}}
}

// TestPickFile: a file or a directory is extracted unchanged and completely, and nothing else is.
func TestPickFile(t *testing.T) {
	dir, where := t.TempDir(), filepath.Join(t.TempDir(), "file")
	writeTree(t, dir)
	v, err := vault.WriteArchive(where)
	must(t, err)
	_, err = kept(t, v, dir, time.Unix(1, 0))
	must(t, errors.Join(err, v.Close()))
	p := pickOf(t, where)
	for _, name := range []string{"a/b/same", "a/link", "empty", "odd \xff\n\"name", "big", "sparse", "a", "fifo"} {
		to := filepath.Join(t.TempDir(), "new", "to")
		at, err := p.File(t.Context(), "n", "/"+name, to)
		must(t, err)
		if at != filepath.Join(to, filepath.Base(name)) {
			t.Errorf("%q is at %q", name, at)
		}
		want, got := listOf(t, filepath.Join(dir, filepath.Dir(name))), listOf(t, to)
		if name == "a" {
			wantListed(t, listOf(t, filepath.Join(dir, "a")), listOf(t, at))
			continue
		}
		base := `"p":"` + filepath.Base(name)
		for _, lines := range []*[]string{&want, &got} {
			var of []string
			for _, line := range *lines {
				if strings.Contains(line, base+`"`) || strings.Contains(name, "odd") && strings.Contains(line, "base64:b2Rk") {
					of = append(of, line)
				}
			}
			*lines = of
		}
		wantListed(t, want, got)
		if names, _ := os.ReadDir(to); len(names) != 1 {
			t.Errorf("%q: there are %v", name, names)
		}
	}
	at, err := p.File(t.Context(), "n", "/a/text", t.TempDir()) // another name of a file that is not extracted
	must(t, err)
	if text, _ := os.ReadFile(at); string(text) != "some text\n" {
		t.Errorf("a/text holds %q", text)
	}
	to := t.TempDir()
	must(t, os.WriteFile(filepath.Join(to, "text"), []byte("mine"), 0o600))
	if _, err := p.File(t.Context(), "n", "/a/text", to); problem.ExitCode(err) != int(problem.Refused) {
		t.Errorf("over what is there: %v", err)
	}
	if text, _ := os.ReadFile(filepath.Join(to, "text")); string(text) != "mine" {
		t.Error("what was there is gone")
	}
	for name, says := range map[string]string{"/a/nothing": "n:/a/nothing is not in this backup",
		"/a/link/x": "a/link is a symbolic link", "/srv/data/x": "not in this backup", "/far/x": "on a server"} {
		if _, err := p.File(t.Context(), "n", name, to); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := p.File(t.Context(), "m", "/a", to); problem.ExitCode(err) != int(problem.Usage) ||
		!strings.Contains(err.Error(), "it contains n") {
		t.Errorf("a node that is not in it: %v", err)
	}
	if names, _ := os.ReadDir(to); len(names) != 1 {
		t.Errorf("left are %v", names)
	}
}

func wantListed(t *testing.T, want, got []string) {
	t.Helper()
	if len(want) == 0 || strings.Join(want, "") != strings.Join(got, "") {
		t.Errorf("was\n%sis\n%s", strings.Join(want, ""), strings.Join(got, ""))
	}
}

// TestPickNode: all data of a node is extracted into a directory, each volume into one of its own.
// Removed files do not become devices.
func TestPickNode(t *testing.T) {
	f := forgeArchive(t)
	removed := vault.Entry{Entry: treesync.Entry{Name: "removed", Mode: unix.S_IFCHR | 0o600}}
	f.tree(vault.Tree{Name: "private/1", Kind: vault.PrivateTree, Node: "n", ID: 1}, f.file("etc", "private"), removed)
	f.tree(vault.Tree{Name: "private/2", Kind: vault.PrivateTree, Node: "m", ID: 2}, f.file("etc", "of another"))
	f.tree(vault.Tree{Name: "volume/data/n", Kind: vault.VolumeTree, Volume: "data", Node: "n"}, f.file("x", "data"))
	f.tree(vault.Tree{Name: "volume/data/m", Kind: vault.VolumeTree, Volume: "data", Node: "m"}, f.file("x", "of another"))
	f.tree(vault.Tree{Name: "volume/inner", Kind: vault.VolumeTree, Volume: "inner"}, f.file("x", "shared"))
	where, _ := f.done()
	p := pickOf(t, where)
	to := filepath.Join(t.TempDir(), "n")
	without, err := p.Node(t.Context(), "n", to)
	must(t, err)
	if strings.Join(without, " ") != "far" {
		t.Errorf("without %v", without)
	}
	got := ""
	must(t, filepath.WalkDir(to, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			text, _ := os.ReadFile(path)
			got += strings.TrimPrefix(path, to) + "=" + string(text) + " "
		}
		return err
	}))
	if got != "/private/etc=private /volumes/data/x=data /volumes/inner/x=shared " {
		t.Error(got)
	}
	if _, err := p.Node(t.Context(), "n", to); problem.ExitCode(err) != int(problem.Refused) {
		t.Errorf("again: %v", err)
	}
	for name, want := range map[string]string{"/etc": "private", "/srv/data/x": "data", "/srv/data/inner/x": "shared"} {
		at, err := p.File(t.Context(), "n", name, t.TempDir())
		must(t, err)
		if text, _ := os.ReadFile(at); string(text) != want {
			t.Errorf("%s: %q", name, text)
		}
	}
	if _, err := p.File(t.Context(), "n", "/removed", t.TempDir()); err == nil ||
		!strings.Contains(err.Error(), "the node had deleted it") {
		t.Errorf("%v", err)
	}
}

// TestPickFromDamaged: intact files of a damaged backup are extracted, and the others are named,
// with their other names.
func TestPickFromDamaged(t *testing.T) {
	dir, at := t.TempDir(), filepath.Join(t.TempDir(), "backups")
	noise(t, filepath.Join(dir, "a"), 5*vault.PieceSize)
	noise(t, filepath.Join(dir, "b"), vault.PieceSize)
	must(t, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "c")))
	keepAgain(t, at, dir)
	a, err := os.ReadFile(filepath.Join(dir, "a"))
	must(t, err)
	v, err := vault.OpenRepository(at)
	must(t, err)
	block := blockWith(t, v, a[:vault.PieceSize])
	must(t, v.Close())
	must(t, os.Truncate(filepath.Join(at, blockPath(block)), 1000))
	p := pickOf(t, at)
	to := filepath.Join(t.TempDir(), "n")
	_, err = p.Node(t.Context(), "n", to)
	must(t, err)
	if p.Lost.String() != "node n: a; node n: c" {
		t.Errorf("lost are %s", p.Lost.String())
	}
	if content, _ := os.ReadFile(filepath.Join(to, "private/b")); len(content) != vault.PieceSize {
		t.Errorf("b has %d bytes", len(content))
	}
	if _, err := os.Lstat(filepath.Join(to, "private/a")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("what is damaged came back")
	}
}

// TestPickOfStrangers: nothing in a list leads outside the directory.
func TestPickOfStrangers(t *testing.T) {
	for name, entries := range map[string]func(f *forger, beside string) []vault.Entry{
		"through a link": func(f *forger, beside string) []vault.Entry {
			return []vault.Entry{{Entry: treesync.Entry{Name: "x", Mode: unix.S_IFLNK | 0o777, Link: treesync.Name(beside)}},
				f.file("x/mine", "changed")}
		},
		"another name of what is outside": func(_ *forger, _ string) []vault.Entry {
			return []vault.Entry{{Entry: treesync.Entry{Name: "x", Mode: unix.S_IFREG | 0o600, Same: "../../../beside/mine"}}}
		},
		"a name twice": func(f *forger, beside string) []vault.Entry {
			return []vault.Entry{{Entry: treesync.Entry{Name: "x", Mode: unix.S_IFLNK | 0o777, Link: treesync.Name(beside)}},
				{Entry: treesync.Entry{Name: "x", Mode: unix.S_IFDIR | 0o755}}, f.file("x/mine", "changed")}
		},
	} {
		dir, intact := yard(t)
		f := forgeArchive(t)
		f.tree(vault.Tree{Name: "private/1", Kind: vault.PrivateTree, Node: "n", ID: 1},
			entries(f, filepath.Join(filepath.Dir(dir), "beside"))...)
		where, _ := f.done()
		p := pickOf(t, where)
		for _, path := range []string{"/x", "/x/mine", "/", "/../../beside/mine"} {
			if at, err := p.File(t.Context(), "n", path, dir); err == nil && filepath.Dir(at) != dir {
				t.Errorf("%s: %s is at %s", name, path, at)
			}
			intact()
		}
		_, _ = p.Node(t.Context(), "n", filepath.Join(dir, "node"))
		intact()
	}
}
