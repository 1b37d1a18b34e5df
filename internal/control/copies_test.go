package control_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/control/backups"
	"orrery/internal/control/releases"
	"orrery/internal/control/sites"
	"orrery/internal/problem"
)

// TestCopiesOfVolumes: a release in quarantine has copies of volumes. They are removed when the
// release becomes live and gets the volumes themselves. Only its own copies are removed.
func TestCopiesOfVolumes(t *testing.T) {
	d := newDesk(t)
	d.up()
	want := func(what string, of700, of701 int) {
		t.Helper()
		for release, n := range map[int]int{700: of700, 701: of701} {
			if all, _ := filepath.Glob(filepath.Join(d.dirs.VolumeCopies("toykat", release), "*", "*")); len(all) != n {
				t.Errorf("%s, release %d has the copies %v, not %d", what, release, all, n)
			}
		}
	}
	d.stage(700)
	d.stage(701)
	want("staged", 1, 1)
	d.turnTo(700)
	want("switched", 0, 1)
	d.turnTo(701)
	want("switched again", 0, 0)
	_, err := releases.Rollback(t.Context(), d.Session, d.site(), nil)
	d.must(err)
	_, err = releases.Stage(t.Context(), d.Session, d.site(), nil, releases.StageOptions{})
	d.wantExit(err, problem.Usage, "no release to stage")
}

// TestNoSuchEdition: a host stores copies of the site directory only for releases.
func TestNoSuchEdition(t *testing.T) {
	d := newDesk(t)
	h := d.machine.Host("local", "toykat", nil)
	for _, release := range []int{0, -1} {
		if err := h.Releases.KeepEdition(t.Context(), release, "", nil); problem.ExitCode(err) != int(problem.Failed) {
			t.Errorf("release %d: %v", release, err)
		}
	}
}

// TestNobodyWaits: if no process can be made to wait for the end of a twin, that is reported when
// the site is changed.
func TestNobodyWaits(t *testing.T) {
	d := newDesk(t)
	d.up()
	d.must(d.makeEndingTwin())
	d.must(d.Cancel("expiry-toykat.dev"))
	d.noLater = errors.New("no process can be begun")
	_, err := sites.Start(t.Context(), d.Session, d.site(), nil)
	d.must(err)
	if !strings.Contains(d.watch.text(), "trouble: no process can be begun") {
		t.Errorf("told was %s", d.watch.text())
	}
}

// TestNamedOnce: the error of a run names each unfinished thing once, however many of its steps
// were not started.
func TestNamedOnce(t *testing.T) {
	d := newDesk(t)
	d.fault.Fail("Create", "web1", 1, nil)
	_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
	d.wantExit(err, problem.Left)
	if n := strings.Count(err.Error(), "node web1"); n != 1 {
		t.Errorf("node web1 is named %d times: %v", n, err)
	}
}

// TestBackupOfSeveralReleases: if a host has several releases of a node beside the live one, a
// backup has all of them.
func TestBackupOfSeveralReleases(t *testing.T) {
	t.Parallel()
	d := diskDesk(t)
	d.up()
	d.stage(700)
	d.stage(701)
	made, err := backups.Take(t.Context(), d.Session, nil, filepath.Join(t.TempDir(), "backups")+"/", backups.Options{})
	d.must(err)
	if made.Nodes < 3 {
		t.Errorf("taken was %+v", made)
	}
}
