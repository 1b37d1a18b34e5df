package backup

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"orrery/internal/backup/vault"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// interruptible returns the restore of a site with two nodes, one of which has a volume. The site
// may already exist.
func interruptible(t *testing.T, existed bool) *Restore {
	t.Helper()
	f := forgeArchive(t)
	layer := image.Record{Digest: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
	for id, name := range []string{1: "one", 2: "two"} {
		if name == "" {
			continue
		}
		f.m.Nodes = append(f.m.Nodes, nodedir.Record{Node: spec.Node{Name: name, ID: id, Base: layer.Digest}})
		f.tree(vault.Tree{Name: privateName(&f.m.Nodes[id-1]), Kind: vault.PrivateTree, Node: name, ID: id},
			f.file("x", "private "+name))
	}
	f.tree(vault.Tree{Name: "site", Kind: vault.SiteTree}, f.file("site.toml", "[site]\n"))
	f.tree(vault.Tree{Name: "volume/data/two", Kind: vault.VolumeTree, Volume: "data", Node: "two"}, f.file("x", "data"))
	where, _ := f.done()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	v, _, err := vault.Open(where)
	must(t, err)
	t.Cleanup(func() { v.Close() })
	id, m, err := vault.Resolve(v, "")
	must(t, err)
	dirs := host.Dirs{State: filepath.Join(dir, "state"), Run: filepath.Join(dir, "run")}
	r := &Restore{Contents: vault.NewPieces(v), Saw: func(int64) {}}
	r.Sizes, err = sizes(t, r.Contents, m)
	must(t, err)
	r.Dirs, r.Store, r.ID, r.Manifest, r.Key, r.SiteDir = dirs, image.Open(dirs.State), id, m, m.Key,
		filepath.Join(dir, "site")
	r.Title, r.Was, r.Replace = "the backup", existed, existed
	must(t, os.MkdirAll(r.Dirs.Site(r.Key), 0o700))
	return r
}

// again returns what the next run finds.
func again(t *testing.T, r *Part) *Part {
	t.Helper()
	found, err := OpenPart(r.Dirs, r.Store, r.Key)
	must(t, err)
	return found
}

// TestInterruptedWhileLaidDown: a restore that is killed while it stages files has changed nothing.
// If the site existed, it goes on as before. If not, its nodes wait.
func TestInterruptedWhileLaidDown(t *testing.T) {
	for _, existed := range []bool{true, false} {
		for after := range 5 { // number of files
			r := interruptible(t, existed)
			if again(t, &r.Part) != nil {
				t.Fatal("it was interrupted before it began")
			}
			seen := 0
			r.Saw = func(int64) {
				if seen++; seen > after {
					panic("killed")
				}
			}
			if !killed(func() error { return r.Stage(t.Context()) }) {
				if after < 4 {
					t.Fatalf("it was not killed after %d files", after)
				}
				continue
			}
			found := again(t, &r.Part)
			if s := found.State(); s.Staged || s.Untouched() != existed {
				t.Errorf("after %d files, was %v: %+v", after, existed, found.plan)
			}
			must(t, found.Clear())
			if again(t, &r.Part) != nil || tree.Exists(stagingPath(r.SiteDir)) || tree.Exists(r.SiteDir) {
				t.Error("something of it is left")
			}
		}
	}
}

// killed reports whether do failed or panicked. A panic acts like SIGKILL: nothing is cleaned up.
func killed(do func() error) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	return do() != nil
}

// TestInterruptedAfterwards: once everything is staged, the next run continues without the backup.
// A node waits until its data is restored.
func TestInterruptedAfterwards(t *testing.T) {
	begun := interruptible(t, true)
	must(t, begun.Stage(t.Context()))
	must(t, os.Remove(begun.Contents.Where()))
	begun.plan.PerHost = false // as a former version left it
	must(t, begun.note())
	r := again(t, &begun.Part)
	if !r.State().Staged || !r.AllStaged() || !r.MustClear() || r.Placed() || !r.waits("one") || r.Title != "the backup" ||
		!r.Replace {
		t.Fatalf("laid down: %+v", r)
	}
	must(t, r.Cleared())
	r = again(t, r)
	if r.MustClear() || r.Placed() {
		t.Fatalf("taken down: %+v", r)
	}
	must(t, r.plan.Moves[0].apply(true)) // and is killed
	r = again(t, r)
	if r.Placed() {
		t.Fatalf("placed in part: %+v", r)
	}
	must(t, r.Place(t.Context(), nil))
	r = again(t, r)
	if !r.Placed() || !r.waits("one") || !r.waits("two") || r.waits("other") {
		t.Fatalf("placed: %+v", r)
	}
	must(t, os.Rename(r.private(1), filepath.Join(t.TempDir(), "filled"))) // as Fill does
	if r = again(t, r); r.waits("one") || !r.waits("two") {
		t.Fatal("it does not tell the nodes apart")
	}
	for name, want := range map[string]string{
		filepath.Join(r.SiteDir, "site.toml"): "[site]\n", filepath.Join(r.Dirs.Volumes(r.Key), "data/two/x"): "data",
	} {
		if text, _ := os.ReadFile(name); string(text) != want {
			t.Errorf("%s: %q", name, text)
		}
	}
	must(t, r.PlaceSnapshots(nil))
	must(t, r.Clear())
	if again(t, r) != nil {
		t.Error("it has not come to its end")
	}
}

// waits reports whether a node will get its data when it is created.
func (r *Part) waits(node string) bool { return slices.Contains(r.State().Nodes, node) }
