package local_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/journal"
	"orrery/internal/observe"
	"orrery/internal/plan/release"
	"orrery/internal/secret"
	"orrery/internal/site/twin"
)

// TestModes: only root can read what a host keeps of a site. All nodes can read the files in
// /etc/orrery, and none can write them. Secrets have the mode that their role gives them.
func TestModes(t *testing.T) {
	old := unix.Umask(0) // so that the umask hides nothing
	t.Cleanup(func() { unix.Umask(old) })
	w := newWorld(t)
	w.settled(w.reach(w.up()))
	none, err := twin.Release(w.site, 0)
	w.must(err)
	w.release(0, none)
	w.stage(700)
	goal := release.Goal{To: map[string]int{"db": 700, "web": 700}, Releases: w.releases()}
	w.reach(release.Switch(w.site, w.observed(), goal))
	h := w.host.Host
	w.must(h.State.SetSiteID(t.Context(), "a1"))
	w.must(h.State.SetCordoned(t.Context(), &observe.Drain{}))
	w.must(h.Secrets.Store(t.Context(), "token", secret.Stored{Value: "abc", Generation: 1}))
	j, err := h.Runs.OpenJournal(t.Context())
	w.must(err)
	w.must(j.Add(journal.Entry{Kind: "begin"}))
	w.must(j.Close())
	site, told := w.host.Dirs.Site("karoo"), filepath.Join(w.host.Dirs.Run, "sites", "karoo")
	want := func(path string, dir bool) fs.FileMode {
		switch in := filepath.Base(filepath.Dir(path)); {
		case path == site || dir && strings.HasPrefix(path, told):
			return 0o755
		case dir:
			return 0o700
		case strings.HasSuffix(path, ".pub"), strings.HasPrefix(path, told) && in != "secrets" &&
			in != "files" && in != "karoo":
			return 0o644
		case strings.HasPrefix(path, told) && in == "secrets":
			return 0o400
		}
		return 0o600
	}
	seen := 0
	for _, top := range []string{site, told} {
		w.must(filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			if seen++; info.Mode().Perm() != want(path, e.IsDir()) {
				t.Errorf("%s has the mode %v, not %v", path, info.Mode(), want(path, e.IsDir()))
			}
			return nil
		}))
	}
	if seen < 50 {
		t.Errorf("%d files were seen", seen)
	}
}
