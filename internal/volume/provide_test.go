package volume

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

var me = NodeRoot{Owner: func(string) (int, int, error) { return os.Getuid(), os.Getgid(), nil }}

// TestProvideCopy: a copy starts as the volume or empty, and an existing copy is left alone.
func TestProvideCopy(t *testing.T) {
	dirs := host.Dirs{State: t.TempDir(), Run: t.TempDir()}
	live := spec.Mount{Volume: "data", Owner: "x", Mode: 0o750}
	frozen := 0
	still := after(func() error { frozen++; return nil })
	provide := func(m spec.Mount) CopyMethod {
		t.Helper()
		made, err := ProvideCopy(context.Background(), dirs, "karoo", "db", m, me, still)
		if err != nil {
			t.Fatal(err)
		}
		return made.Method
	}
	of := func(how string, release int) spec.Mount {
		m := live
		m.Copy, m.Release = how, release
		return m
	}
	if how := provide(of(site.CopySnapshot, 700)); how != "" || frozen != 0 {
		t.Errorf("of a volume that is not there a copy was made by %q", how)
	}
	if err := Provide(t.Context(), dirs, "karoo", "db", live, me); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(Path(dirs, "karoo", "db", live), "rows"), "x")
	if how := provide(of(site.CopySnapshot, 701)); how == "" || frozen != 1 {
		t.Errorf("copied by %q, frozen %d times", how, frozen)
	}
	same(t, Path(dirs, "karoo", "db", live), Path(dirs, "karoo", "db", of(site.CopySnapshot, 701)))
	if how := provide(of(site.CopyEmpty, 702)); how != "" {
		t.Errorf("what is to be empty was copied by %q", how)
	}
	empty := Path(dirs, "karoo", "db", of(site.CopyEmpty, 702))
	if in, err := os.ReadDir(empty); err != nil || len(in) != 0 {
		t.Errorf("in the empty copy is %v (%v)", in, err)
	}
	if info, err := os.Stat(empty); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("its mode is %v (%v)", info.Mode(), err)
	}
	write(t, filepath.Join(empty, "own"), "x")
	if provide(of(site.CopyEmpty, 702)); frozen != 1 {
		t.Error("a copy that is there was made again")
	}
	if _, err := os.Stat(filepath.Join(empty, "own")); err != nil {
		t.Error(err)
	}
}

// TestProvideShared: a volume shared by several nodes is made once, even if all of them request it
// at the same time.
func TestProvideShared(t *testing.T) {
	dirs := host.Dirs{State: t.TempDir(), Run: t.TempDir()}
	live := spec.Mount{Volume: "data", Owner: "x", Mode: 0o700, Shared: true}
	together(t, func(node string) error { return Provide(t.Context(), dirs, "karoo", node, live, me) })
	write(t, filepath.Join(Path(dirs, "karoo", "n", live), "x"), "x")
	m := live
	m.Copy, m.Release = site.CopySnapshot, 701
	together(t, func(node string) error {
		_, err := ProvideCopy(t.Context(), dirs, "karoo", node, m, me, once)
		return err
	})
	same(t, Path(dirs, "karoo", "a", live), Path(dirs, "karoo", "b", m))
	listed, err := List(dirs, "karoo")
	if err != nil || len(listed) != 1 || listed[0].Node != "" {
		t.Errorf("listed are %v (%v)", listed, err)
	}
}

func together(t *testing.T, do func(node string) error) {
	t.Helper()
	var all sync.WaitGroup
	for _, node := range []string{"a", "b", "c", "d", "e", "f"} {
		all.Go(func() {
			if err := do(node); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestProvideSubvolume: on btrfs a new volume is a subvolume, of which a copy costs nothing.
func TestProvideSubvolume(t *testing.T) {
	need.Integration(t)
	dir := places(t)["btrfs"]
	dirs := host.Dirs{State: dir, Run: dir}
	live := spec.Mount{Volume: "data", Owner: "x", Mode: 0o751}
	if err := Provide(t.Context(), dirs, "karoo", "db", live,
		NodeRoot{Owner: func(string) (int, int, error) { return 7, 8, nil }}); err != nil {
		t.Fatal(err)
	}
	zoo(t, filepath.Join(Path(dirs, "karoo", "db", live), "zoo"))
	m := live
	m.Copy, m.Release = site.CopySnapshot, 701
	made, err := ProvideCopy(t.Context(), dirs, "karoo", "db", m, me, once)
	if err != nil || made.Method != Subvolume {
		t.Errorf("copied by %q (%v)", made.Method, err)
	}
	same(t, Path(dirs, "karoo", "db", live), Path(dirs, "karoo", "db", m))
	if err := Erase(Path(dirs, "karoo", "db", live)); err != nil {
		t.Error(err)
	}
}

// TestProvideFilled: a volume begins with what the node's layers have at its path, once, whole, and not before
// the quarantine's empty copy of it does. A missing directory is a mistake of the role.
func TestProvideFilled(t *testing.T) {
	dirs := host.Dirs{State: t.TempDir(), Run: t.TempDir()}
	layer := t.TempDir()
	write(t, filepath.Join(layer, "srv", "data", "rows"), "x")
	if err := os.Chmod(filepath.Join(layer, "srv", "data"), 0o750); err != nil {
		t.Fatal(err)
	}
	asked := 0
	root := NodeRoot{WithLayers: func(path string, do func(string) error) error {
		asked++
		if _, err := os.Stat(filepath.Join(layer, path)); err != nil {
			return err
		}
		return do(filepath.Join(layer, path) + "/.")
	}}
	m := spec.Mount{Volume: "data", Path: "/srv/data", Layer: true, Owner: "root:root", Mode: 0o755}
	for range 2 {
		if err := Provide(t.Context(), dirs, "karoo", "db", m, root); err != nil {
			t.Fatal(err)
		}
	}
	same(t, filepath.Join(layer, "srv", "data"), Path(dirs, "karoo", "db", m))
	if info, err := os.Stat(Path(dirs, "karoo", "db", m)); err != nil || info.Mode().Perm() != 0o750 || asked != 1 {
		t.Errorf("its mode is %v (%v), the layers were asked %d times", info.Mode(), err, asked)
	}
	m.Volume, m.Path = "other", "/srv/none"
	err := Provide(t.Context(), dirs, "karoo", "db", m, root)
	if !problem.Is(err, problem.Mistake) || !strings.Contains(err.Error(), "have no directory /srv/none") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(Path(dirs, "karoo", "db", m)); err == nil {
		t.Error("a volume without its content was made")
	}
}
