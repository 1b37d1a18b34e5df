package backups

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/control"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
)

// heard is a Watcher that records its events.
type heard struct {
	events []control.Event
	bytes  int64
}

func (h *heard) Steps(*plan.Plan, func(*plan.Step) time.Duration) control.StepWatcher { return nil }
func (h *heard) Bytes(string) control.ByteWatcher                                     { return h }
func (h *heard) Event(e control.Event)                                                { h.events = append(h.events, e) }
func (h *heard) Add(bytes int64)                                                      { h.bytes += bytes }
func (h *heard) Close()                                                               {}

// told returns the texts of the events, one per line.
func (h *heard) told() string {
	var all []string
	for _, e := range h.events {
		all = append(all, string(e.Kind)+": "+e.Text)
	}
	return strings.Join(all, "\n")
}

type yard struct {
	*control.Session
	*heard
	site *site.Site
	dir  string // of the site
	at   string // of the backups
}

// newYard returns a site without nodes, an empty host, and a directory for backups.
func newYard(t *testing.T) *yard {
	t.Helper()
	y := &yard{heard: &heard{}, dir: t.TempDir(), at: filepath.Join(t.TempDir(), "backups") + "/"}
	y.Session = &control.Session{Dirs: host.Dirs{State: t.TempDir(), Run: t.TempDir()}, SiteDir: y.dir, Watcher: y.heard}
	y.write(t, "[site]\nname = \"karoo\"\n")
	var err error
	if y.site, err = sitefile.Load(y.dir); err != nil {
		t.Fatal(err)
	}
	return y
}

func (y *yard) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(y.dir, "site.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// take backs up the site and returns the description of the backup.
func (y *yard) take(t *testing.T) Backup {
	t.Helper()
	into, err := vault.Write(y.at)
	if err != nil {
		t.Fatal(err)
	}
	defer into.Close() //nolint:errcheck // of a test
	set := &backup.Selection{Site: y.site, Dir: y.dir, Dirs: y.Dirs, Engines: map[string]engine.Engine{},
		Store: image.Open(y.Dirs.State), Target: y.at}
	b := &backup.Backup{Selection: set, Into: into, By: "test", Who: "somebody", Saw: y.Add}
	all, err := b.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all.Manifest.Pause = 1
	r, err := all.Finish(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	taken := describe(into.Where(), r.ID, r.Manifest)
	taken.addReport(r)
	return taken
}

// blocks returns the files of the stored blocks.
func (y *yard) blocks(t *testing.T) (all []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(y.at, "blocks"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			all = append(all, path)
		}
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("there are no blocks: %v", err)
	}
	return all
}

// TestList: the list of backups has the data of their manifests, and pruning keeps as many backups
// as requested.
func TestList(t *testing.T) {
	y := newYard(t)
	first := y.take(t)
	y.write(t, "[site]\nname = \"karoo\"\nowner = \"somebody else\"\n")
	second := y.take(t)
	if second.Added == 0 || second.Read == 0 {
		t.Errorf("of the second backup: %+v", second)
	}
	all, err := List(y.at)
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, b := range all { // in any order, because they may have been taken in the same second
		if b.ID != first.ID && b.ID != second.ID || b.Site != "karoo" || b.Who != "somebody" || b.Read != 0 {
			t.Errorf("%+v", b)
		}
	}
	gone, _, err := Prune(y.at, 1)
	if err != nil || len(gone) != 1 {
		t.Errorf("gone are %v, %v", gone, err)
	}
	if all, err := List(y.at); err != nil || len(all) != 1 {
		t.Errorf("after pruning: %+v, %v", all, err)
	}
	if _, _, err := Prune(t.TempDir(), 1); err == nil {
		t.Error("a directory that holds no backups becomes one that does")
	}
}

// TestVerifyAndRepair: Verify reports each backup of a directory, even a damaged one. Repair takes
// the damaged data from a copy.
func TestVerifyAndRepair(t *testing.T) {
	y := newYard(t)
	taken := y.take(t)
	verify := func() (whole, damaged []string) {
		t.Helper()
		err := Verify(t.Context(), y.Session, y.at, func(id string, damage error) {
			if damage == nil {
				whole = append(whole, id)
			} else {
				damaged = append(damaged, id)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return whole, damaged
	}
	if whole, damaged := verify(); !slices.Equal(whole, []string{taken.ID}) || len(damaged) > 0 || y.bytes == 0 {
		t.Fatalf("%v are whole and %v damaged", whole, damaged)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(y.at)); err != nil {
		t.Fatal(err)
	}
	for _, path := range y.blocks(t) {
		if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("rotten"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if whole, damaged := verify(); len(whole) > 0 || !slices.Equal(damaged, []string{taken.ID}) {
		t.Fatalf("%v are whole and %v damaged", whole, damaged)
	}
	done, err := repair(t.Context(), y.Session, y.at, nil, ofNone)
	if err != nil || done.Damaged() != 1 || len(done.Backups) != 1 || len(done.Corrupt) == 0 {
		t.Fatalf("from nothing: %+v, %v", done, err)
	}
	if told := y.told(); !strings.Contains(told, "trouble: damaged in "+done.Where) || strings.Contains(told, "may need") {
		t.Errorf("told was: %s", told)
	}
	if done, err = repair(t.Context(), y.Session, y.at, []string{copied}, ofNone); err != nil || done.Damaged() != 0 {
		t.Fatalf("from a copy: %+v, %v", done, err)
	}
	if whole, damaged := verify(); len(whole) != 1 || len(damaged) > 0 {
		t.Errorf("mended from a copy, %v are whole and %v damaged", whole, damaged)
	}
}

// TestPick: a file with a malformed name, or of a node that is not in the backup, is not found.
func TestPick(t *testing.T) {
	y := newYard(t)
	y.take(t)
	for _, o := range []ExtractOptions{{Files: []string{"etc/motd"}}, {Files: []string{"db:etc/motd"}},
		{Files: []string{"db:/etc/motd"}}, {Node: "db"}} {
		o.Dir = t.TempDir()
		done, err := Extract(t.Context(), y.Session, y.at, o)
		if problem.ExitCode(err) != int(problem.Usage) || done == nil || len(done.Paths) > 0 {
			t.Errorf("%+v: %+v, %v", o, done, err)
		}
	}
}

// TestMeant: without a site, Repair looks for the data only in copies, and reports that.
func TestMeant(t *testing.T) {
	y := newYard(t)
	y.SiteDir = ""
	t.Chdir(t.TempDir())
	var r backup.Repair
	err := useSelectedSite(t.Context(), y.Session, &r, y.at)
	if r.Selection != nil || err != nil || !strings.Contains(y.told(), "no site selected") {
		t.Errorf("%+v, %v, %s", r.Selection, err, y.told())
	}
}

// ofNone uses no site as a source of data.
func ofNone(*backup.Repair) error { return nil }
