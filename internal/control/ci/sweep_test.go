package ci

import (
	"os"
	"path/filepath"
	"testing"

	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/site"
)

// TestSweep: what remains of a run that was killed before its twin existed is removed. Twins that
// are being created, were kept on purpose, or do not belong to a run stay.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	p := &Runner{Session: &control.Session{Dirs: host.Dirs{State: dir, Run: dir}, Command: "orrery ci"},
		original: &site.Site{Name: "karoo"}}
	for _, key := range []string{"karoo.ci-dead", "karoo.ci-alive", "karoo.ci-kept", "karoo.dev", "other.ci-dead"} {
		if err := os.MkdirAll(p.Session.Dirs.Site(key), 0o700); err != nil {
			t.Fatal(err)
		}
		if key == "karoo.ci-kept" {
			continue
		}
		if err := os.WriteFile(p.lockPath(key), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	alive, err := host.TakeLock(t.Context(), p.lockPath("karoo.ci-alive"), control.Holder(p.Session))
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Release()
	if err := p.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(p.Session.Dirs.Site("*"))
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if len(left) != 4 || left[0] != "karoo.ci-alive" || left[1] != "karoo.ci-kept" || left[2] != "karoo.dev" ||
		left[3] != "other.ci-dead" {
		t.Errorf("left are %v", left)
	}
}
