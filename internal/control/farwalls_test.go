package control_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/control"
	"orrery/internal/control/backups"
	"orrery/internal/control/releases"
	"orrery/internal/control/roster"
	"orrery/internal/control/sites"
	"orrery/internal/control/status"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

// A hostile host is one whose root can write anything to its records of a site.
type hostile struct {
	*desk
	*machine
}

// record returns the host's records of releases.
func (h hostile) record() (r observe.Releases) {
	h.desk.Helper()
	text, err := os.ReadFile(h.recordPath())
	h.must(err)
	h.must(json.Unmarshal(text, &r))
	return r
}

func (h hostile) recordPath() string {
	return filepath.Join(h.machine.dirs.Site("toykat"), "releases.json")
}

// forge replaces the record by one that claims to be newer than those of all other hosts.
func (h hostile) forge(change func(*observe.Releases)) {
	h.desk.Helper()
	r := h.record()
	past := append(slices.Clone(r.Past), r.State())
	change(&r)
	r.ID, r.Past = fmt.Sprintf("%024x", len(past)), past
	text, err := json.Marshal(r)
	h.must(err)
	h.must(os.WriteFile(h.recordPath(), text, 0o600))
}

// copyOf replaces the host's copy of a release by another site directory.
func (h hostile) copyOf(release int, files map[string]string) {
	h.desk.Helper()
	dir := h.machine.dirs.Release("toykat", release)
	for name, text := range files {
		path := filepath.Join(dir, "site", name)
		h.must(os.MkdirAll(filepath.Dir(path), 0o700))
		h.must(os.WriteFile(path, []byte(text), 0o600))
	}
}

// walled returns a site on two hosts, with release 700 live and a hostile second host.
func walled(t *testing.T, change ...string) (*desk, hostile) {
	t.Helper()
	d, other := farDesk(t)
	text := twoHosts + "[release.700]\n[release.701]\n"
	for i := 0; i < len(change); i += 2 {
		text = strings.Replace(text, change[i], change[i+1], 1)
	}
	d.write("site.toml", text)
	d.up()
	d.stage(700)
	d.turnTo(700)
	d.wantLive(700)
	return d, hostile{d, other}
}

// mounts returns the directories outside a machine's state that its nodes can see.
func (m *machine) mounts() (paths []string) {
	m.t.Helper()
	nodes, err := m.of("toykat").List(m.t.Context(), "toykat")
	if err != nil {
		m.t.Fatal(err)
	}
	for _, n := range nodes {
		for _, mount := range n.Mounts {
			if mount.Source != "" && !strings.HasPrefix(mount.Source, m.dirs.State) {
				paths = append(paths, n.Name+": "+mount.Source)
			}
		}
	}
	return paths
}

// has reports whether any file of a machine contains a text.
func (m *machine) has(text string) bool {
	found := false
	for _, dir := range []string{m.dirs.State, m.dirs.Run} {
		_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				content, _ := os.ReadFile(path)
				found = found || strings.Contains(string(content), text)
			}
			return nil
		})
	}
	return found
}

// TestForgedRelease: root of a host forges a release that mounts a directory of another host into a
// node there, and a record that makes this release live. The other host does nothing of it.
//
// Promise (Other hosts): Root of one host cannot have a directory of another mounted, run a command
// there, or get a secret by a forged copy of a release. With control.TestForgedRole,
// control.TestForgedCopy, control.TestTrust, test.TestFarSwitch.
func TestForgedRelease(t *testing.T) {
	d, evil := walled(t)
	helper := filepath.Join(t.TempDir(), "helper")
	d.must(os.Mkdir(helper, 0o755))
	forged := strings.Replace(twoHosts, "[network.lan]", "[volume.archive]\npath = \""+helper+"\"\n[network.lan]", 1) +
		"[release.7]\n"
	evil.copyOf(7, map[string]string{"site.toml": forged,
		"roles/db/role.toml": "[[volume]]\nname = \"archive\"\npath = \"/srv\"\n", "roles/web/role.toml": ""})
	evil.forge(func(r *observe.Releases) { r.Active = map[string]int{"db": 7, "web1": 700, "web2": 700} })
	_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
	if got := d.machine.mounts(); len(got) > 0 {
		t.Errorf("nodes see %v", got)
	}
	d.wantExit(err, problem.Surprise, "host sv2 reports of release 7 of node db that it is live",
		"contradicts the record of host sv1", "--without sv2")
	d.Without = []string{"sv2"}
	d.up()
	if r := (hostile{d, d.machine}).record(); r.Active["db"] != 700 {
		t.Errorf("on record at sv1 is %+v", r)
	}
	if got := d.machine.mounts(); len(got) > 0 {
		t.Errorf("nodes see %v", got)
	}
}

// TestForgedRole: root of a host forges a release in which a node there needs a secret that no node
// needs. The host does not get the secret.
func TestForgedRole(t *testing.T) {
	const value = "s3cr3t-of-the-control-host"
	file := filepath.Join(t.TempDir(), "tok")
	if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
	d, evil := walled(t, "[network.lan]", "[secret.tok]\nfile = \""+file+"\"\n[network.lan]")
	secret := "[[secret]]\nname = \"tok\"\nowner = \"0:0\"\n[[health]]\ncommand = [\"true\"]\n"
	for _, release := range []int{6, 700} {
		text := strings.Replace(twoHosts, "[network.lan]", "[secret.tok]\nfile = \"/tok\"\n[network.lan]", 1) +
			"[release.6]\n[release.700]\n"
		evil.copyOf(release, map[string]string{"site.toml": text, "roles/db/role.toml": "", "roles/web/role.toml": secret})
		active := maps.Clone(evil.record().Active)
		active["web1"], active["web2"] = release, release
		evil.forge(func(r *observe.Releases) { r.Active = active })
		_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
		if release == 6 {
			d.wantExit(err, problem.Refused, "releases.lock: release 6 is not in it")
		} else if d.must(err); !strings.Contains(d.watch.text(),
			"host sv2 had a copy of release 700 that differs from releases.lock; it was replaced") {
			t.Errorf("told: %s", d.watch.text())
		}
		if evil.machine.has(value) {
			t.Fatalf("by a forged copy of release %d, the host has the secret", release)
		}
	}
}

// TestForgedCopy: the only host with a copy of a release sends one that differs from releases.lock.
// Nothing is made from it, and the live nodes are not affected.
func TestForgedCopy(t *testing.T) {
	d, evil := walled(t)
	d.must(os.RemoveAll(filepath.Join(d.machine.dirs.Release("toykat", 700), "site")))
	evil.copyOf(700, map[string]string{"roles/db/role.toml": "[[step]]\nwhen = \"boot\"\nscript = \"id\"\n"})
	for what, do := range map[string]func() error{
		"up": func() error {
			_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
			return err
		},
		"switch": func() error {
			_, err := releases.Switch(t.Context(), d.Session, d.site(), nil, releases.SwitchOptions{Release: 700})
			return err
		},
		"stage": func() error {
			_, err := releases.Stage(t.Context(), d.Session, d.site(), nil, releases.StageOptions{Release: 700, GiveUp: true})
			if problem.ExitCode(err) == int(problem.Mistake) &&
				strings.Contains(err.Error(), "is live and cannot be changed") {
				return problem.New(problem.Refused, "does not have the digest")
			}
			return err
		},
	} {
		err := do()
		d.wantExit(err, problem.Refused, "does not have the digest")
		if t.Failed() {
			t.Log(what)
		}
	}
	if status, err := status.Read(t.Context(), d.Session, d.site(), nil); err != nil || len(status.Nodes) != 6 {
		t.Errorf("the status is %+v: %v", status, err)
	}
	_, err := sites.Down(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
}

// TestTrust: the hosts' copy of a release is accepted after it was shown, and only exactly that
// copy.
func TestTrust(t *testing.T) {
	d, evil := walled(t)
	d.stage(701)
	d.must(os.Remove(filepath.Join(d.dir, "releases.lock"))) // as for a site that was staged by an earlier version
	if gone, err := releases.Prune(t.Context(), d.Session, d.site(), 0); err != nil ||
		!slices.Equal(gone.Releases, []int{701}) {
		t.Errorf("pruned were %+v: %v", gone, err)
	}
	_, err := sites.Stop(t.Context(), d.Session, d.site(), []string{"web1"})
	d.must(err)
	_, err = releases.Rollback(t.Context(), d.Session, d.site(), nil)
	d.wantExit(err, problem.Refused, "releases.lock: release 700 is not in it")
	trust := func(change func(*releases.TrustOptions)) (*releases.Copy, error) {
		o := releases.TrustOptions{Release: 700, Show: func(*releases.Copy) {}}
		change(&o)
		return releases.Trust(t.Context(), d.Session, d.site(), o)
	}
	_, _, err = sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
	d.wantExit(err, problem.Refused, "releases.lock: release 700 is not in it", "orrery release trust 700")
	d.write("roles/web/role.toml", "# another\n")
	d.Confirmer = &refuses{}
	var shown *releases.Copy
	_, err = trust(func(o *releases.TrustOptions) { o.Show = func(c *releases.Copy) { shown = c } })
	d.wantExit(err, problem.Refused, "not confirmed", "--digest "+shown.Digest)
	if len(shown.Files) != 1 || shown.Files[0].Path != "roles/web/role.toml" ||
		shown.Files[0].Lines[0] != "-# another" || !slices.Equal(shown.Hosts, []string{"sv1", "sv2"}) {
		t.Errorf("shown was %+v", shown)
	}

	// The hosts have different copies, and the caller selects one.
	evil.copyOf(700, map[string]string{"roles/web/role.toml": "# evil\n"})
	_, err = trust(func(*releases.TrustOptions) {})
	d.wantExit(err, problem.Usage, "hosts have different copies of release 700: sv1; sv2", "--host NAME")
	_, err = trust(func(o *releases.TrustOptions) { o.Host, o.Digest = "sv2", shown.Digest })
	d.wantExit(err, problem.Refused, ", not the one that you trust")
	into := filepath.Join(t.TempDir(), "review")
	made, err := trust(func(o *releases.TrustOptions) { o.Host, o.Into = "sv2", into })
	d.must(err)
	if text, err := os.ReadFile(filepath.Join(into, "roles/web/role.toml")); err != nil || string(text) != "# evil\n" ||
		made.Digest == shown.Digest {
		t.Errorf("stored was %s (%v) of %+v", text, err, made)
	}
	_, err = trust(func(o *releases.TrustOptions) { o.Host, o.Into = "sv2", into })
	d.wantExit(err, problem.Usage, "does not exist yet")
	_, err = trust(func(o *releases.TrustOptions) { o.Host, o.Digest = "sv1", shown.Digest })
	d.must(err)
	d.up()
	if made, err = trust(func(o *releases.TrustOptions) { o.Digest = "of no use" }); err != nil ||
		made.Locked != made.Digest {
		t.Errorf("a second time: %+v, %v", made, err)
	}
	_, err = trust(func(o *releases.TrustOptions) { o.Release = 701 })
	d.wantExit(err, problem.Mistake, "no host has a readable copy of release 701")
}

// TestLockUnwritable: a release is staged only if releases.lock can be written. Otherwise nothing
// is done.
func TestLockUnwritable(t *testing.T) {
	d, other := farDesk(t)
	d.write("site.toml", twoHosts+"[release.700]\n")
	d.up()
	d.write("elsewhere", "version = 1\n")
	d.must(os.Symlink("elsewhere", filepath.Join(d.dir, "releases.lock")))
	_, err := releases.Stage(t.Context(), d.Session, d.site(), nil, releases.StageOptions{Release: 700})
	d.wantExit(err, problem.Unable, "releases.lock: cannot be written", "a writable site directory")
	d.wantNodes(allUp)
	if _, err := os.Stat(other.dirs.Release("toykat", 700)); err == nil {
		t.Error("a host keeps a copy all the same")
	}
	d.write("elsewhere", "version = 1\n<<<<<<< HEAD\n")
	_, err = releases.Stage(t.Context(), d.Session, d.site(), nil, releases.StageOptions{Release: 700})
	d.wantExit(err, problem.Mistake, "releases.lock: cannot be read: line 2", "keep the lines of both")
}

// TestRestoreReleases: the releases of a backup are restored if they are in releases.lock, or if
// the site directory is restored with them. A backup cannot select other releases.
//
// Promise (Other hosts): A backup brings back no release of a site on several hosts that was not in
// `releases.lock` before.
func TestRestoreReleases(t *testing.T) {
	d, _ := farDisks(t)
	d.write("site.toml", twoHosts+"[release.700]\n")
	d.stage(700)
	d.turnTo(700)
	to := filepath.Join(t.TempDir(), "backups") + "/"
	_, err := backups.Take(t.Context(), d.Session, nil, to, backups.Options{})
	d.must(err)
	lock := filepath.Join(d.dir, "releases.lock")
	good, err := os.ReadFile(lock)
	d.must(err)
	restore := func(dir string) error {
		_, err := backups.Restore(t.Context(), d.Session, to, control.RestoreOptions{Dir: dir, Replace: true})
		return err
	}
	for what, text := range map[string]string{
		"another digest": strings.Replace(string(good), "sha256:", "sha256:"+strings.Repeat("0", 64)+"\" # ", 1),
		"none":           "version = 1\n",
	} {
		d.must(os.WriteFile(lock, []byte(text), 0o600))
		err := restore(d.dir)
		d.wantExit(err, problem.Refused, "release 700 in the backup differs from the one in releases.lock; nothing was done",
			"write its digest into that file: 700 = \"sha256:")
		if t.Failed() {
			t.Fatal(what)
		}
		d.noRestore(what, d.machine)
	}
	d.must(os.WriteFile(lock, good, 0o600))
	d.must(restore(d.dir))
	d.wantSame(700)

	// The site directory of the backup has its own releases.lock. A directory of an earlier version
	// has none, and gets one.
	lockOf := func() string {
		t.Helper()
		fresh := filepath.Join(t.TempDir(), "site")
		d.must(restore(fresh))
		text, err := os.ReadFile(filepath.Join(fresh, "releases.lock"))
		d.must(err)
		return string(text)
	}
	if text := lockOf(); text != string(good) {
		t.Errorf("releases.lock is %s", text)
	}
	watcher := d.Watcher
	d.Watcher = lockless{watcher, lock}
	_, err = backups.Take(t.Context(), d.Session, nil, to, backups.Options{})
	d.Watcher = watcher
	d.must(err)
	if _, err := os.Stat(lock); err == nil {
		t.Fatal("the backup has a releases.lock")
	}
	if text := lockOf(); text != string(good) {
		t.Errorf("releases.lock is %s, of a site directory that had none", text)
	}
	_, err = backups.Take(t.Context(), d.Session, nil, to, backups.Options{})
	d.wantExit(err, problem.Refused, "releases.lock: release 700 is not in it")
}

// lockless removes releases.lock before the site directory is backed up, as in backups of earlier
// versions.
type lockless struct {
	control.Watcher
	lock string
}

func (l lockless) Bytes(what string) control.ByteWatcher {
	_ = os.Remove(l.lock)
	return l.Watcher.Bytes(what)
}

// lock returns the content of releases.lock.
func (d *desk) lock() string {
	text, _ := os.ReadFile(filepath.Join(d.dir, "releases.lock"))
	return string(text)
}

// TestLockOfSites: a site with one host has no releases.lock. When another host joins, this
// machine's releases are added to it. Pruned releases are removed from it.
func TestLockOfSites(t *testing.T) {
	d, other := farDesk(t)
	d.write("site.toml", strings.Replace(toykat, "[network.lan]", "[host.sv1]\naddress = \"local\"\n[network.lan]", 1))
	d.up()
	d.stage(700)
	d.turnTo(700)
	if lock := d.lock(); lock != "" {
		t.Errorf("releases.lock is %s", lock)
	}
	d.machine.others["sv2"] = other
	_, err := roster.Add(t.Context(), d.Session, "sv2", "ops@10.8.1.2:2222")
	d.must(err)
	d.up()
	d.wantLive(700)
	if lock := d.lock(); !strings.Contains(lock, "[release]\n700 = \"sha256:") {
		t.Errorf("releases.lock is %s", lock)
	}
	d.stage(701)
	if lock := d.lock(); !strings.Contains(lock, "\n701 = ") {
		t.Errorf("releases.lock is %s", lock)
	}
	gone, err := releases.Prune(t.Context(), d.Session, d.site(), 0)
	d.must(err)
	if lock := d.lock(); !slices.Equal(gone.Releases, []int{701}) || !strings.Contains(lock, "\n700 = ") ||
		strings.Contains(lock, "701") {
		t.Errorf("gone are %v; releases.lock is %s", gone, lock)
	}
}

// TestForgedRecord: root of a host writes to its record that other releases are live on other
// hosts. A control host has staged all of these releases. The forged record has no effect: only a
// control host can make a release live, or return to one.
//
// Promise (Other hosts): The record of one host makes no release live, completes no switch and
// confirms no trial on another. With control.TestForgedConfirmation, observe.TestAgreeHostile,
// observe.TestAgreeCut, observe.TestAgreeApart.
func TestForgedRecord(t *testing.T) {
	set := func(n int) map[string]int { return map[string]int{"db": n, "web1": n, "web2": n} }
	for what, forge := range map[string]func(*observe.Releases){
		"another release is live": func(r *observe.Releases) { r.Active = set(701) },
		"a switch was interrupted": func(r *observe.Releases) {
			r.Switch = &observe.Switch{To: set(700), End: set(701), Who: "ada"}
		},
		"a rollback was interrupted": func(r *observe.Releases) {
			r.Switch = &observe.Switch{To: set(0), End: set(0), Who: "ada"}
		},
		"a trial goes back": func(r *observe.Releases) {
			r.Trial = &observe.Trial{Release: 700, Back: set(0), Who: "ada"}
			r.Switch = &observe.Switch{To: set(0), End: set(0), Who: "ada", Alone: true}
		},
		"a trial has gone back": func(r *observe.Releases) {
			r.Ended = &observe.TrialEnd{Release: 700, Result: observe.Reverted, Back: set(0)}
		},
	} {
		d, evil := walled(t)
		d.stage(701)
		before := (hostile{d, d.machine}).record()
		evil.forge(forge)
		_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
		if err == nil { // its claims about its own nodes may be followed; the other hosts are not affected
			d.wantLive(700)
		} else {
			d.wantExit(err, problem.Surprise, "host", "sv2")
		}
		after := (hostile{d, d.machine}).record()
		if !maps.Equal(after.Active, before.Active) {
			t.Errorf("%s: on record at sv1 is %+v", what, after)
		}
		nodes, err := d.machine.of("toykat").List(t.Context(), "toykat")
		d.must(err)
		for _, n := range nodes {
			if !n.Staged && n.Release != 700 {
				t.Errorf("%s: release %d of node %s is live", what, n.Release, n.Name)
			}
		}
	}
}

// TestForgedConfirmation: root of a host cannot confirm a release on trial, nor end a trial that
// all hosts know as confirmed.
func TestForgedConfirmation(t *testing.T) {
	d, other := onFarTrial(t)
	evil := hostile{d, other}
	evil.forge(func(r *observe.Releases) {
		r.Trial, r.Ended = nil, &observe.TrialEnd{Release: 700, Result: observe.Confirmed, Why: "by hand"}
	})
	d.up()
	if !strings.Contains(d.watch.text(), "host sv1 does not know yet that the trial is over; the trial continues") {
		t.Errorf("told: %s", d.watch.text())
	}
	for _, h := range []hostile{evil, {d, d.machine}} {
		if r := h.record(); r.Trial == nil || r.Ended != nil {
			t.Errorf("on record is %+v", r)
		}
	}
	begun := evil.record()
	_, err := releases.Confirm(t.Context(), d.Session, d.site(), "by hand")
	d.must(err)
	if r := evil.record(); r.Ended == nil || !r.Ended.Settled {
		t.Errorf("on record is %+v", r)
	}
	begun.Trial, begun.Ended = nil, &observe.TrialEnd{Release: 700, Result: observe.Reverted, Back: begun.Trial.Back}
	gone, err := json.Marshal(begun.SuccessorOf(evil.record()))
	d.must(err)
	d.must(os.WriteFile(evil.recordPath(), gone, 0o600))
	_, _, _ = sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
	if r := (hostile{d, d.machine}).record(); r.Switch != nil || r.Active["db"] != 700 {
		t.Errorf("on record at sv1 is %+v", r)
	}
}
