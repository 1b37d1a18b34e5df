package members

import (
	"os"
	"path/filepath"
	"testing"

	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/member"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// TestBrokenSiteFile: while the site file has a mistake, members can see the nodes, and owners can do
// nothing more, because who the owners are now is unknown.
func TestBrokenSiteFile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the site directory must belong to root")
	}
	dir, err := os.MkdirTemp("/root", "orrery-test-") // everything above belongs to root
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "site.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("[site]\nname = \"a\"\nowners = [\"ada\"]\n[network.lan]\nsubnet = \"10.99.1.0/24\"\n" +
		"[image.debian]\nsuite = \"bookworm\"\n[node.one]\nid = 11\n")
	dirs := host.Dirs{State: t.TempDir(), Run: t.TempDir()}
	call := func(verb string) error {
		c := &control.Session{Dirs: dirs, From: dir, Member: &member.Person{Name: "ada"}}
		return MayCall(t.Context(), c, verb, nil, nil)
	}
	c := &control.Session{Dirs: dirs}
	for _, err := range []error{c.Register().MarkUp(&site.Site{Name: "a"}, dir), c.Register().StoreDeclaration("a", dir),
		call("status"), call("exec")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	write("x")
	if err := call("status"); err != nil {
		t.Error(err)
	}
	if err := call("exec"); !problem.Is(err, problem.Mistake) {
		t.Errorf("an owner may enter nodes: %v", err)
	}
	if err := os.Remove(filepath.Join(dirs.Site("a"), "declared.json")); err != nil {
		t.Fatal(err)
	}
	if err := call("status"); !problem.Is(err, problem.Mistake) {
		t.Errorf("without a record: %v", err)
	}
}
