package control_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"orrery/internal/backup"
	"orrery/internal/control"
	"orrery/internal/control/backups"
	"orrery/internal/control/releases"
	"orrery/internal/control/sites"
	"orrery/internal/control/snapshots"
	"orrery/internal/control/twins"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/snapshot"
)

// backup backs up the whole site, and returns where the backup is.
func (d *desk) backup(o backups.Options) string {
	d.Helper()
	to := filepath.Join(d.TempDir(), "backups") + "/"
	made, err := backups.Take(d.Context(), d.Session, nil, to, o)
	d.must(err)
	if made.Nodes != 3 || made.Volumes != 1 || made.Bytes == 0 || made.Read == 0 {
		d.Errorf("taken was %+v", made)
	}
	return to
}

// keptDesk returns a desk whose nodes have written something, and a backup of that.
func keptDesk(t *testing.T) (d *desk, where string) {
	t.Helper()
	d = diskDesk(t)
	d.up()
	d.say("db", motd, "then")
	d.say("db", book, "then")
	d.say("web1", motd, "then")
	time.Sleep(100 * time.Millisecond) // a file that has just changed may change again unnoticed
	return d, d.backup(backups.Options{})
}

// elsewhere returns another machine, which has nothing of the site.
func elsewhere(t *testing.T) *desk {
	t.Helper()
	d := diskDesk(t)
	d.must(os.RemoveAll(d.dir))
	return d
}

func (d *desk) wantThen() {
	d.Helper()
	d.wantSaid("db", motd, "then")
	d.wantSaid("db", book, "then")
	d.wantSaid("web1", motd, "then")
	d.wantNodes(allUp)
}

// TestRestoreElsewhere: a site is restored on another machine, with its files and everything that
// its nodes had written.
func TestRestoreElsewhere(t *testing.T) {
	source, where := keptDesk(t)
	d := elsewhere(t)
	made, err := backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{Dir: d.dir})
	d.must(err)
	if made.Site.Name != "toykat" || made.Dir != d.dir || made.Title == "" || made.Nodes != nil {
		t.Errorf("restored was %+v", made)
	}
	d.wantThen()
	if !strings.Contains(d.watch.text(), "generated secrets and SSH host keys were replaced") {
		t.Errorf("told was %s", d.watch.text())
	}
	for _, name := range []string{"site.toml", "roles/db/role.toml"} {
		if text, err := os.ReadFile(filepath.Join(d.dir, name)); err != nil || string(text) != string(source.read(name)) {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
	if r, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{}); err != nil || r != nil {
		t.Errorf("an up after it: %+v, %v", r, err)
	}
	if _, err := os.Stat(backup.StagingDir(d.dirs, "toykat")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left is what was laid down: %v", err)
	}
}

func (d *desk) read(name string) []byte {
	d.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, name))
	d.must(err)
	return text
}

// An onlooker is a Watcher that calls look each time a count of bytes is complete.
type onlooker struct {
	control.Watcher
	look func()
}

func (o onlooker) Bytes(what string) control.ByteWatcher {
	return lastLook{o.Watcher.Bytes(what), o.look}
}

type lastLook struct {
	control.ByteWatcher
	look func()
}

func (l lastLook) Close() {
	l.look()
	l.ByteWatcher.Close()
}

// TestRestoreUndeclared: the site directory does not exist until the hosts have their parts of a
// restore. If the restore is killed before that, the site cannot be brought up with empty nodes.
func TestRestoreUndeclared(t *testing.T) {
	_, where := keptDesk(t)
	d := elsewhere(t)
	looked := 0
	d.Session.Watcher = onlooker{d.Session.Watcher, func() {
		looked++
		if _, err := os.Stat(filepath.Join(d.dir, "site.toml")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the site can be brought up: %v", err)
		}
	}}
	_, err := backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{Dir: d.dir})
	d.must(err)
	d.wantThen()
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(d.dir), ".*-restore")); looked < 2 || len(left) > 0 ||
		err != nil {
		t.Errorf("looked %d times, left are %v, %v", looked, left, err)
	}
}

// TestRestoreInPlace: an existing site is replaced only if that is requested and confirmed. A twin
// of the backup can be created beside the site.
func TestRestoreInPlace(t *testing.T) {
	d, where := keptDesk(t)
	d.say("db", book, "now")
	_, err := backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{Dir: d.dir})
	d.wantExit(err, problem.Refused, "3 nodes and 1 volume of toykat", "--to NAME", "--replace")
	_, err = backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{To: "not a name"})
	d.wantExit(err, problem.Usage)
	_, err = backups.Restore(t.Context(), d.Session, filepath.Join(where, "none"), control.RestoreOptions{})
	d.wantExit(err, problem.Usage)
	asker := &refuses{}
	d.Confirmer = asker
	_, err = backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{Dir: d.dir, Replace: true})
	d.wantExit(err, problem.Refused)
	if len(asker.asked) != 1 || asker.asked[0].About != control.Replace {
		t.Errorf("asked was %+v", asker.asked)
	}
	d.Confirmer = control.AssumeYes{}
	d.wantSaid("db", book, "now")

	made, err := backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{To: "dev"})
	d.must(err)
	if made.Site.Key() != "toykat.dev" {
		t.Errorf("restored was %s", made.Site.Key())
	}
	of := *d
	ofTwin := *d.Session
	ofTwin.SiteDir, ofTwin.Twin = made.Dir, "dev"
	of.Session = &ofTwin
	of.wantSaid("db", book, "then")
	of.wantNodes(allUp)
	d.wantSaid("db", book, "now")
	_, err = backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{To: "dev"})
	d.wantExit(err, problem.Refused, "of toykat.dev")
	d.must(twins.Destroy(t.Context(), of.Session, "dev"))

	_, err = backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{Dir: d.dir, Replace: true})
	d.must(err)
	d.wantThen()
}

// TestRestoreSome: a backup of some nodes restores these nodes.
func TestRestoreSome(t *testing.T) {
	source := diskDesk(t)
	_, err := backups.Take(t.Context(), source.Session, nil, filepath.Join(t.TempDir(), "x")+"/", backups.Options{})
	source.wantExit(err, problem.Failed, "none of these nodes", "orrery up")
	source.up()
	source.say("web1", motd, "then")
	where := filepath.Join(t.TempDir(), "one.orb")
	taken, err := backups.Take(t.Context(), source.Session, []string{"web1"}, where, backups.Options{})
	source.must(err)
	if taken.Nodes != 1 || taken.Volumes != 0 {
		t.Errorf("taken was %+v", taken)
	}
	d := elsewhere(t)
	made, err := backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{Dir: d.dir})
	d.must(err)
	if strings.Join(made.Nodes, " ") != "web1" {
		t.Errorf("restored was %+v", made)
	}
	d.wantNodes("db none absent -, web1 none running healthy, web2 none absent -")
	d.wantSaid("web1", motd, "then")
}

// identity creates a key pair. It returns the file with the secret key, and the public key.
func identity(t *testing.T) (file, public string) {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, key.Recipient().String()
}

// TestRestoreSecrets: secrets are restored with the key that they were encrypted for, and with no
// other.
func TestRestoreSecrets(t *testing.T) {
	source := diskDesk(t)
	source.write("roles/db/role.toml", "[[secret]]\nname = \"ledger\"\n")
	source.write("site.toml", toykat+"[secret.ledger]\ngenerate = 24\n")
	source.up()
	key, public := identity(t)
	other, _ := identity(t)
	where := filepath.Join(t.TempDir(), "backups") + "/"
	taken, err := backups.Take(t.Context(), source.Session, nil, where, backups.Options{Keys: []string{public}})
	source.must(err)
	if !taken.Secrets {
		t.Error("there are no secrets in it")
	}
	secret := func(d *desk) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(d.dirs.Secrets("toykat"), "ledger"))
		d.must(err)
		return string(text)
	}
	d := elsewhere(t)
	_, err = backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{Dir: d.dir, Identity: other})
	if err == nil {
		t.Fatal("another key opens the secrets")
	}
	_, err = backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{Dir: d.dir, Identity: key})
	d.must(err)
	if secret(d) != secret(source) {
		t.Error("the secret is another")
	}
}

// TestRestoreKilled: a restore is killed at every operation, including one that replaces an
// existing site. An up or the same command then completes it, or finds the former site unchanged.
func TestRestoreKilled(t *testing.T) {
	_, where := keptDesk(t)
	for name, before := range map[string]func(*desk){
		"fresh":   func(*desk) {},
		"replace": func(d *desk) { d.up(); d.say("db", motd, "now"); d.say("db", book, "now"); d.say("web1", motd, "now") },
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				d := diskDesk(t)
				before(d)
				o := control.RestoreOptions{Dir: d.dir, Replace: true}
				d.fault.KillAt(n)
				ctx, cancel := d.fault.KillContext(t.Context())
				_, err := backups.Restore(ctx, d.Session, where, o)
				cancel()
				d.fault.Revive()
				if err == nil {
					if n < 8 {
						t.Errorf("it was over after %d operations", n)
					}
					return
				}
				switch {
				case n%3 == 0: // repeat the same command
					_, err = backups.Restore(t.Context(), d.Session, where, o)
					d.must(err)
				case n%3 == 1 || len(d.Register().SitesUp()) == 0:
					_, elsewhere, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
					d.must(err)
					if elsewhere != "" {
						t.Errorf("brought up was %s", elsewhere)
					}
				default: // the host reboots
					for _, m := range d.Register().SitesUp() {
						_, _, err := sites.ResumeSite(t.Context(), d.Session, m)
						d.must(err)
					}
				}
				d.wantThen()
				if left, _ := filepath.Glob(backup.StagingDir(d.dirs, "toykat")); left != nil {
					t.Errorf("left is %s", left)
				}
				if t.Failed() {
					t.Fatalf("killed at %d: %s", n, d.watch.text())
				}
			}
		})
	}
}

// TestRestoreInterrupted: as long as a restore is not complete, no node comes up without its
// restored data. Down removes the restore.
func TestRestoreInterrupted(t *testing.T) {
	_, where := keptDesk(t)
	d := elsewhere(t)
	d.fault.Fail("build", "", 1, nil)
	_, err := backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{Dir: d.dir})
	d.wantExit(err, problem.Left, "3 of 16 steps are done; not done: layer debian")
	from, err := backup.OpenPart(d.dirs, image.Open(d.dirs.State), "toykat")
	if err != nil || from == nil || !from.Placed() || !slices.Contains(from.State().Nodes, "db") {
		t.Fatalf("%+v, %v", from, err)
	}
	_, err = sites.Start(t.Context(), d.Session, d.site(), nil)
	if err != nil {
		t.Errorf("a start, which makes no node: %v", err)
	}
	_, err = releases.Stage(t.Context(), d.Session, d.site(), nil, releases.StageOptions{Release: 700})
	d.wantExit(err, problem.Left, "a restore of toykat was interrupted", "orrery up completes it")
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, true)
	d.must(err)
	if from, err := backup.OpenPart(d.dirs, image.Open(d.dirs.State), "toykat"); err != nil || from != nil {
		t.Errorf("after a down: %+v, %v", from, err)
	}
	d.up()
	d.wantSaid("db", book, "")
}

// TestRestoreUntouched: a restore was killed before all its parts were staged. If the site existed
// before, up removes the parts. Otherwise up creates no node without its data.
func TestRestoreUntouched(t *testing.T) {
	for _, existing := range []bool{true, false} {
		d := diskDesk(t)
		if existing {
			d.up()
		}
		part := map[string]any{"id": "one", "from": "/srv/backups/@one", "apart": true, "was": existing}
		d.must(host.WriteJSON(filepath.Join(backup.StagingDir(d.dirs, "toykat"), "restore.json"), 0o600, part))
		_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
		if !existing {
			d.wantExit(err, problem.Left, "a restore of toykat was interrupted", "orrery restore /srv/backups/@one")
			_, err = sites.Down(t.Context(), d.Session, d.site(), nil, false)
		} else if !strings.Contains(d.watch.text(), "before it changed anything; its staged data is removed") {
			t.Errorf("told was %s", d.watch.text())
		}
		d.must(err)
		d.noRestore("afterwards", d.machine)
		d.must(os.MkdirAll(backup.StagingDir(d.dirs, "toykat"), 0o700)) // nothing was recorded yet
		d.up()
		d.noRestore("up", d.machine)
	}
}

// TestRestoreFill: if filling a node with its data fails, the next up creates the node again, with
// its data.
func TestRestoreFill(t *testing.T) {
	_, where := keptDesk(t)
	d := elsewhere(t)
	d.fault.Fail("SetProgress", "web1", 1, nil)
	_, err := backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{Dir: d.dir})
	d.wantExit(err, problem.Left, "node web1", "run the same command")
	if told := d.watch.text(); strings.Contains(told, "another release") {
		t.Errorf("told was %s", told)
	}
	d.up()
	d.wantThen()
}

// TestRestoreCancelled: a restore that the caller cancels while parts are staged has changed
// nothing.
func TestRestoreCancelled(t *testing.T) {
	d, where := keptDesk(t)
	d.say("db", book, "now")
	ctx, cancel := context.WithCancel(t.Context())
	d.Confirmer = changes{cancel}
	_, err := backups.Restore(ctx, d.Session, where, control.RestoreOptions{Dir: d.dir, Replace: true})
	d.wantExit(err, problem.Interrupted, "nothing was put in place")
	d.wantSaid("db", book, "now")
	d.up()
	d.wantSaid("db", book, "now")
}

// TestRestorePaths: volumes are restored to directories named in the backup only with the caller's
// consent.
func TestRestorePaths(t *testing.T) {
	source := diskDesk(t)
	at := filepath.Join(t.TempDir(), "ledgers")
	source.must(os.Mkdir(at, 0o755))
	source.write("site.toml", toykat+"[volume.archive]\npath = \""+at+"\"\n")
	source.up()
	source.say("db", book, "then")
	where := source.backup(backups.Options{})
	source.must(os.RemoveAll(at))
	d := elsewhere(t)
	asker := &refuses{}
	d.Confirmer = asker
	_, err := backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{Dir: d.dir})
	d.wantExit(err, problem.Refused, at, "--yes-paths toykat")
	if len(asker.asked) != 1 || asker.asked[0].About != control.Paths {
		t.Errorf("asked was %+v", asker.asked)
	}
	d.Confirmer = control.AssumeYes{}
	_, err = backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{Dir: d.dir})
	d.must(err)
	d.wantSaid("db", book, "then")
	if text, err := os.ReadFile(filepath.Join(at, "db", "book")); string(text) != "then" {
		t.Errorf("%q, %v", text, err)
	}
}

// keepMemory adds the memory of a node to a snapshot.
func (d *desk) keepMemory(id string) {
	d.Helper()
	s, err := snapshot.Open(d.dirs, "toykat", id)
	d.must(err)
	s.Nodes[0].Memory = true
	d.must(os.WriteFile(s.MemoryPath(s.Nodes[0].Record.ID), []byte("what it had in memory"), 0o600))
	d.must(host.WriteJSON(filepath.Join(s.Dir, "snapshot.json"), 0o600, s))
}

// TestRestoreWithReleases: a site is restored at the release that was live, and can be switched to
// another release as before.
func TestRestoreWithReleases(t *testing.T) {
	source := diskDesk(t)
	source.up()
	source.stage(700)
	source.turnTo(700)
	source.say("db", motd, "then")
	taken, err := snapshots.Take(t.Context(), source.Session, source.site(), nil, snapshots.Extras{})
	source.must(err)
	source.keepMemory(taken.ID)
	where := filepath.Join(t.TempDir(), "backups") + "/"
	_, err = backups.Take(t.Context(), source.Session, nil, where, backups.Options{Layers: true, Snapshots: true})
	source.must(err)
	d := elsewhere(t)
	_, err = backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{Dir: d.dir})
	d.must(err)
	d.wantLive(700)
	d.wantSaid("db", motd, "then")
	if !strings.Contains(d.watch.text(), "built from their recipes") {
		t.Errorf("told was %s", d.watch.text())
	}
	if all, err := snapshots.List(t.Context(), d.Session, d.site()); err != nil || len(all) != 1 {
		t.Errorf("the snapshots are %v, %v", all, err)
	}
	d.stage(701)
	d.turnTo(701)
	d.wantLive(701)
}

// TestReplaceNode: one node is restored from a backup while the others continue. If anything fails,
// the node is unchanged.
func TestReplaceNode(t *testing.T) {
	d, where := keptDesk(t)
	for _, node := range []string{"db", "web1"} {
		d.say(node, motd, "now")
	}
	d.say("db", book, "now")
	d.Confirmer = &refuses{}
	_, err := backups.ReplaceNode(t.Context(), d.Session, where, "db")
	d.wantExit(err, problem.Refused)
	d.Confirmer = control.AssumeYes{}
	_, err = backups.ReplaceNode(t.Context(), d.Session, where, "nobody")
	d.wantExit(err, problem.Usage, "has no node nobody")
	d.fault.Fail("Start", "db", 1, nil)
	_, err = backups.ReplaceNode(t.Context(), d.Session, where, "db")
	d.wantExit(err, problem.Undone)
	d.wantSaid("db", motd, "now")
	d.wantSaid("db", book, "now")
	made, err := backups.ReplaceNode(t.Context(), d.Session, where, "db")
	d.must(err)
	if made.Site != "toykat" || made.Restored == nil || made.Nodes != 1 {
		t.Errorf("replaced was %+v", made)
	}
	d.wantSaid("db", motd, "then")
	d.wantSaid("db", book, "then")
	d.wantSaid("web1", motd, "now")
	if all, err := snapshots.List(t.Context(), d.Session, d.site()); err != nil || len(all) > 0 {
		t.Errorf("left are the snapshots %v, %v", all, err)
	}
	_, err = sites.Down(t.Context(), d.Session, d.site(), []string{"db"}, false)
	d.must(err)
	_, err = backups.ReplaceNode(t.Context(), d.Session, where, "db")
	d.wantExit(err, problem.Failed, "does not exist", "orrery up db")
	d.write("site.toml", strings.Replace(toykat, `name = "toykat"`, `name = "karoo"`, 1))
	_, err = backups.ReplaceNode(t.Context(), d.Session, where, "db")
	d.wantExit(err, problem.Refused, "of site toykat, not of karoo")
}

// TestPickFromBackup: files, or everything that a node has, are extracted from a backup without a
// site.
func TestPickFromBackup(t *testing.T) {
	d, where := keptDesk(t)
	to := t.TempDir()
	made, err := backups.Extract(t.Context(), d.Session, where,
		backups.ExtractOptions{Files: []string{"db:" + motd, "db:" + book}, Dir: to})
	d.must(err)
	if len(made.Paths) != 2 {
		t.Fatalf("%+v", made)
	}
	for _, path := range made.Paths {
		if text, err := os.ReadFile(path); string(text) != "then" {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	to = filepath.Join(t.TempDir(), "db")
	made, err = backups.Extract(t.Context(), d.Session, where, backups.ExtractOptions{Node: "db", Dir: to})
	d.must(err)
	if len(made.Paths) != 1 || made.Paths[0] != to || len(made.Without) > 0 {
		t.Errorf("%+v", made)
	}
}

// TestRepairFromSite: damaged data in a directory of backups is taken from the site again, if it
// has not changed there.
func TestRepairFromSite(t *testing.T) {
	d, where := keptDesk(t)
	blocks, _ := filepath.Glob(filepath.Join(where, "blocks", "*", "*"))
	if len(blocks) == 0 {
		blocks, _ = filepath.Glob(filepath.Join(where, "blocks", "*"))
	}
	for _, path := range blocks {
		d.must(os.Chmod(path, 0o600))
		d.must(os.WriteFile(path, []byte("rotten"), 0o600))
	}
	done, err := backups.Repair(t.Context(), d.Session, where, nil)
	d.must(err)
	if len(done.Backups) != 1 || len(done.Corrupt) == 0 || done.Damaged() != 0 {
		t.Errorf("%+v", done)
	}
	again := elsewhere(t)
	_, err = backups.Restore(t.Context(), again.Session, where, control.RestoreOptions{Dir: again.dir})
	again.must(err)
	again.wantThen()
}

// TestBackupWaits: a backup waits for a process that changes the site.
func TestBackupWaits(t *testing.T) {
	d, _ := keptDesk(t)
	f, err := d.Hosts(t.Context(), d.site())
	d.must(err)
	letGo, err := d.LockSite(t.Context(), d.site(), f)
	d.must(err)
	done := make(chan error)
	go func() {
		_, err := backups.Take(t.Context(), d.Session, nil, filepath.Join(t.TempDir(), "one.orb"), backups.Options{})
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("it did not wait: %v", err)
	default:
	}
	letGo()
	d.must(<-done)
	if _, err := d.HostsWithoutReleases(t.Context(), &site.Site{Name: "toykat"}); err != nil {
		t.Error(err)
	}
}

// TestResumeOthers: after a reboot, nodes come up that an interrupted restore does not concern,
// even if the restore cannot be completed.
func TestResumeOthers(t *testing.T) {
	source := diskDesk(t)
	source.up()
	source.say("web1", motd, "then")
	where := filepath.Join(t.TempDir(), "one.orb")
	_, err := backups.Take(t.Context(), source.Session, []string{"web1"}, where, backups.Options{})
	source.must(err)
	d := elsewhere(t)
	d.fault.Fail("SetProgress", "web1", 1, nil)
	_, err = backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{Dir: d.dir})
	d.wantExit(err, problem.Left, "node web1")
	d.fault.Fail("Create", "web1", 1, nil)
	up := d.Register().SitesUp()
	if len(up) != 1 {
		t.Fatalf("up are %+v", up)
	}
	_, _, err = sites.ResumeSite(t.Context(), d.Session, up[0])
	d.wantExit(err, problem.Failed, "was not brought up")
	d.wantNodes("db none running healthy, web1 none absent -, web2 none running healthy")
	_, _, err = sites.ResumeSite(t.Context(), d.Session, up[0])
	d.must(err)
	d.wantNodes(allUp)
	d.wantSaid("web1", motd, "then")
}

// TestUpElsewhere: an up from another directory completes an interrupted restore from the directory
// of the restore, and reports that.
func TestUpElsewhere(t *testing.T) {
	_, where := keptDesk(t)
	d := elsewhere(t)
	d.fault.Fail("SetProgress", "web1", 1, nil)
	_, err := backups.Restore(t.Context(), d.Session, where, control.RestoreOptions{Dir: d.dir})
	d.wantExit(err, problem.Left, "node web1")
	session := *d.Session
	session.SiteDir = t.TempDir()
	d.must(os.CopyFS(session.SiteDir, os.DirFS(d.dir)))
	s, err := session.Load()
	d.must(err)
	_, elsewhere, err := sites.Up(t.Context(), &session, s, nil, sites.UpOptions{})
	d.must(err)
	if elsewhere != d.dir {
		t.Errorf("brought up was %q", elsewhere)
	}
	d.wantThen()
}
