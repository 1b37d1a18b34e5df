package host

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"orrery/internal/problem"
)

// TestClose checks that other users have no access to a site's files, except for the path to its
// nodes. They cannot list the directories on that path.
func TestClose(t *testing.T) {
	top := t.TempDir()
	d := Dirs{State: filepath.Join(top, "state"), Run: filepath.Join(top, "run")}
	if err := d.MakePrivate("s"); err != nil { // the directory does not exist yet
		t.Fatal(err)
	}
	for _, dir := range []string{d.State, d.Run, filepath.Join(d.State, "sites"), d.Site("s"), d.Nodes("s"), d.Keys("s"),
		d.Logs("s"), d.Releases("s"), filepath.Join(d.State, "slots")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{d.Journal("s"), d.Lock("s"), filepath.Join(d.Site("s"), "up.json")} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(top, "outside")
	if err := os.WriteFile(outside, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(d.Site("s"), "link")); err != nil {
		t.Fatal(err)
	}
	if err := d.MakePrivate("s"); err != nil {
		t.Fatal(err)
	}
	passages := map[string]bool{d.State: true, filepath.Join(d.State, "sites"): true, d.Site("s"): true,
		d.Nodes("s"): true}
	for _, root := range []string{d.State, d.Run} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.Type()&fs.ModeSymlink != 0 {
				return err
			}
			info, err := e.Info()
			want := fs.FileMode(0)
			if passages[path] {
				want = 0o011
			}
			if err == nil && info.Mode().Perm()&0o077 != want {
				t.Errorf("%s is %v", path, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if info, _ := os.Stat(outside); info.Mode().Perm() != 0o644 {
		t.Errorf("what a link leads to is %v", info.Mode())
	}
}

// TestTakeSite checks that the holder of a site's lock may remove its directory with the lock, as
// when a twin expires. Other processes may be about to take the lock at any moment.
func TestTakeSite(t *testing.T) {
	top := t.TempDir()
	d := Dirs{State: filepath.Join(top, "state"), Run: filepath.Join(top, "run")}
	var removers sync.WaitGroup
	for range 4 {
		removers.Go(func() {
			for range 200 {
				l, err := d.LockSite(t.Context(), "s.t", NewHolder("somebody", "expire"))
				switch {
				case err == nil:
					if err := d.RemoveSite("s.t"); err != nil {
						t.Error(err)
					}
					l.Release()
				case !problem.Is(err, problem.Locked):
					t.Error(err)
				}
			}
		})
	}
	removers.Wait()
}
