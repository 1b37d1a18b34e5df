package control_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control/releases"
	"orrery/internal/problem"
)

// inTheWay puts a file, or a non-empty directory, in place of path. Away restores what was there.
func (m *machine) inTheWay(path string, dir bool) (away func()) {
	m.t.Helper()
	must := func(err error) {
		m.t.Helper()
		if err != nil {
			m.t.Fatal(err)
		}
	}
	_, err := os.Lstat(path)
	existing := err == nil
	if existing {
		must(os.Rename(path, path+".aside"))
	}
	if dir {
		must(os.MkdirAll(filepath.Join(path, "in the way"), 0o755))
	} else {
		must(os.WriteFile(path, nil, 0o600))
	}
	return func() {
		m.t.Helper()
		must(os.RemoveAll(path))
		if existing {
			must(os.Rename(path+".aside", path))
		}
	}
}

// TestBlockedStage: a release is staged on no host if a host cannot store its copy. When it can,
// the release is staged.
func TestBlockedStage(t *testing.T) {
	t.Parallel()
	d, _ := frailDesk(t, false)
	d.up()
	stage := func() error {
		_, err := releases.Stage(t.Context(), d.Session, d.site(), nil, releases.StageOptions{Release: 700})
		return err
	}
	for _, m := range []*machine{d.machine, d.others["sv2"]} {
		away := m.inTheWay(m.dirs.Releases("toykat"), false)
		if err := stage(); err == nil || !strings.Contains(err.Error(), "releases") {
			t.Errorf("%s cannot keep it: %v", m.name, err)
		}
		away()
		d.wantNodes(bothUp)
	}
	d.must(stage())
	d.turnTo(700)
}

// TestBlockedTrial: a trial does not begin if a host cannot store its rollback plan. The next up
// returns to what was live before.
func TestBlockedTrial(t *testing.T) {
	t.Parallel()
	d, _ := frailDesk(t, false)
	d.up()
	d.stage(700)
	other := d.others["sv2"]
	away := other.inTheWay(apply.UnattendedPath(other.dirs, "toykat", apply.TriggerTrial), true)
	_, err := releases.Switch(t.Context(), d.Session, d.site(), nil,
		releases.SwitchOptions{Release: 700, Within: time.Hour})
	d.wantExit(err, problem.HalfWay, "its trial could not start")
	if w, _ := other.Waiting(); len(w) > 0 {
		t.Errorf("somebody watches over what cannot go back: %v", w)
	}
	away()
	d.up()
	if got := d.nodes(); !strings.Contains(got, "db none running healthy") || !strings.Contains(got,
		"web1 none running healthy") {
		t.Errorf("the nodes are %s", got)
	}
	made, err := releases.Switch(t.Context(), d.Session, d.site(), nil,
		releases.SwitchOptions{Release: 700, Within: time.Hour})
	d.must(err)
	if made.Trial == nil {
		t.Error("there is no trial")
	}
}
