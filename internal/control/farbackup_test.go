package control_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/control"
	"orrery/internal/control/backups"
	"orrery/internal/control/overdue"
	"orrery/internal/control/sites"
	"orrery/internal/control/twins"
	"orrery/internal/control/way"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
	"orrery/internal/tree"
)

// backedUp returns a site on two hosts, with a backup. Its nodes had written "then" when the backup
// was taken, and "now" since.
func backedUp(t *testing.T) (d *desk, other *machine, to string) {
	t.Helper()
	d, other = farDisks(t)
	d.writeAll("then")
	to = filepath.Join(t.TempDir(), "backups") + "/"
	_, err := backups.Take(t.Context(), d.Session, nil, to, backups.Options{})
	d.must(err)
	d.writeAll("now")
	return d, other, to
}

// TestFarBackup: a backup has the nodes of all hosts at one moment. A second backup receives from a
// host only what has changed.
func TestFarBackup(t *testing.T) {
	d, other := farDisks(t)
	d.writeAll("then")
	to := filepath.Join(t.TempDir(), "backups") + "/"
	take := func() (*backups.Taken, error) {
		return backups.Take(t.Context(), d.Session, nil, to, backups.Options{})
	}
	first, err := take()
	d.must(err)
	if first.Nodes != 3 || first.Volumes != 1 || first.Pause <= 0 || first.Read == 0 {
		t.Errorf("taken was %+v", first)
	}
	d.say("web1", motd, "now")
	second, err := take()
	d.must(err)
	if second.Read == 0 || second.Read >= first.Read {
		t.Errorf("first %d bytes were read, then %d", first.Read, second.Read)
	}
	v, _, err := vault.Open(to)
	d.must(err)
	m, err := v.Manifest(second.ID)
	d.must(err)
	d.must(v.Verify(t.Context(), second.ID, func(int64) {}))
	d.must(v.Close())
	var on []string
	for _, entry := range m.Trees {
		on = append(on, entry.Name+"@"+entry.Host)
	}
	if got := strings.Join(on, " "); got != "private/11@sv1 private/21@sv2 private/22@sv2 site@ volume/archive/db@sv1" {
		t.Errorf("in it are %s", got)
	}

	// A failure on one host leaves no backup, and no frozen node.
	other.fault.Fail("Freeze", "web1", 1, nil)
	_, err = take()
	if err == nil || strings.Count(err.Error(), "injected failure") != 1 {
		t.Errorf("a node that cannot be frozen: %v", err)
	}
	d.noSnapshot("a node that cannot be frozen", d.machine, other)
	all, err := backups.List(to)
	if err != nil || len(all) != 2 {
		t.Errorf("there are %+v: %v", all, err)
	}

	// A host that is left out is named in the backup, and when the backup is restored.
	d.Without = []string{"sv2"}
	third, err := take()
	d.must(err)
	if third.Nodes != 1 || !strings.Contains(strings.Join(third.Left, " "),
		"host sv2: left out, with the data of these nodes, which are on no other host: web1") {
		t.Errorf("without sv2, taken was %+v", third)
	}
	d.Without = nil
	_, err = backups.Restore(t.Context(), d.Session, third.Title, control.RestoreOptions{Dir: d.dir, Replace: true})
	d.must(err)
	if !strings.Contains(d.watch.text(), "host sv2 was left out when the backup was taken") {
		t.Errorf("told was %s", d.watch.text())
	}
	d.wantNodes(farUp)
}

// TestFarBackupKilled: a host is lost at each point of taking a backup. That leaves no backup and,
// once the host is back, no frozen node. The same command then takes a backup.
func TestFarBackupKilled(t *testing.T) {
	d, other := farDisks(t)
	d.writeAll("then")
	to := filepath.Join(t.TempDir(), "backups") + "/"
	take := func(ctx context.Context) error {
		_, err := backups.Take(ctx, d.Session, nil, to, backups.Options{})
		return err
	}
	d.WaitForLocks = true // the helper may still hold the lock
	for n := 1; ; n++ {
		other.fault.KillAt(n)
		ctx, cancel := other.fault.KillContext(t.Context())
		err := take(ctx)
		cancel()
		d.Links.Close()
		other.fault.Revive()
		all, wrong := backups.List(to)
		if err == nil {
			if n < 3 || len(all) != 1 {
				t.Errorf("it was over after %d operations, and there are %d backups: %v", n, len(all), wrong)
			}
			break
		}
		if len(all) > 0 {
			t.Fatalf("killed at %d, there are %+v", n, all)
		}
		d.up() // taking the lock thaws frozen nodes
		d.noSnapshot("killed", d.machine, other)
	}
	d.must(backups.Verify(t.Context(), d.Session, to, func(id string, damage error) {
		if damage != nil {
			t.Errorf("%s: %v", id, damage)
		}
	}))
}

// TestFarRestore: a site is restored on all its hosts, from any machine, and on hosts that have
// never had it.
func TestFarRestore(t *testing.T) {
	d, other, to := backedUp(t)
	_, err := backups.Restore(t.Context(), d.Session, to, control.RestoreOptions{Dir: d.dir})
	d.wantExit(err, problem.Refused, "3 nodes and 1 volume of toykat", "--replace")
	d.wantWritten("now", "now")
	made, err := backups.Restore(t.Context(), d.Session, to, control.RestoreOptions{Dir: d.dir, Replace: true})
	d.must(err)
	if made.Site.Name != "toykat" {
		t.Errorf("restored was %+v", made)
	}
	d.wantWritten("then", "then")
	d.wantNodes(farUp)
	d.noRestore("restored", d.machine, other)
}

// noRestore fails the test if machines have anything of a restore.
func (d *desk) noRestore(what string, on ...*machine) {
	d.Helper()
	for _, m := range on {
		if left := backup.StagingDir(m.dirs, "toykat"); tree.Exists(left) {
			d.Errorf("%s: left is %s", what, left)
		}
	}
}

// TestFarRestoreElsewhere: a site is restored on hosts that have never had it, by a site file that
// names the new hosts.
func TestFarRestoreElsewhere(t *testing.T) {
	source, _, to := backedUp(t)

	d := diskDesk(t)
	one, two := newMachine(t), newMachine(t)
	one.disk, two.disk = true, true
	d.machine.others = map[string]*machine{"sv2": one, "sv3": two}
	d.must(os.RemoveAll(d.dir))
	d.must(os.CopyFS(d.dir, os.DirFS(source.dir)))
	d.write("site.toml", strings.NewReplacer("sv1", "sv3", `address = "local"`, `address = "10.8.1.3"`).Replace(twoHosts))
	for at, m := range map[string]*machine{"10.8.1.2/24": one, "10.8.1.3/24": two} {
		m.of("toykat").Addresses = []observe.Address{{Prefix: at, Link: "eth0", MTU: 1500}}
	}
	_, err := backups.Restore(t.Context(), d.Session, to, control.RestoreOptions{Dir: d.dir})
	d.must(err)
	if !strings.Contains(d.watch.text(), "differs from the one in the backup") {
		t.Errorf("told was %s", d.watch.text())
	}
	d.wantWritten("then", "then")
	d.wantNodes(farUp)
	d.noRestore("restored elsewhere", d.machine, one, two)
}

// TestFarRestoreKilled: a host or the control host is lost at each point of a restore. An up, or
// the same command from any machine that has the backup, then completes the restore or finds the
// former site unchanged. No verb brings up nodes without their data.
func TestFarRestoreKilled(t *testing.T) {
	for what, step := range map[string]int{"a host": 2, "who steers, and is a host": 4} {
		told := 0
		for n := 1; ; n += step {
			d, other, to := backedUp(t)
			dies := other
			if step > 2 {
				dies = d.machine
			}
			restore := func(ctx context.Context, d *desk) error {
				_, err := backups.Restore(ctx, d.Session, to, control.RestoreOptions{Dir: d.dir, Replace: true})
				return err
			}
			dies.fault.KillAt(n)
			ctx, cancel := dies.fault.KillContext(t.Context())
			err := restore(ctx, d)
			cancel()
			d.Links.Close()
			dies.fault.Revive()
			if err == nil {
				if n < 8 || told == 0 {
					t.Errorf("%s: it was over after %d operations, and told %d times", what, n, told)
				}
				break
			}
			d.WaitForLocks = true // the helper may still hold the lock
			d.must(overdue.ReportPending(d.Context(), d.Session, d.site()))
			if n%3 == 1 { // take down the whole site
				_, err = sites.Down(t.Context(), d.Session, d.site(), nil, false)
				d.must(err)
				d.noRestore("taken down", d.machine, other)
			} else {
				if _, _, err = sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{}); err != nil {
					t.Fatalf("%s: killed at %d, up: %v", what, n, err)
				}
				got := d.has("web1") + d.has("db")
				if got != "nownow" && got != "thenthen" {
					t.Errorf("after up, nodes have %q", got)
				}
				if strings.Contains(d.watch.text(), "it is completed first") {
					if told++; got != "thenthen" || !strings.Contains(d.watch.text(), "to complete it: orrery ") {
						t.Errorf("after up, nodes have %q, and told was %s", got, d.watch.text())
					}
				}
				d.noRestore("brought up", d.machine, other)
			}
			by := d
			if n%2 == 0 {
				by = diskDesk(t)
				by.machine.others = map[string]*machine{"sv1": d.machine, "sv2": other}
				by.write("site.toml", strings.Replace(twoHosts, `address = "local"`, `address = "10.8.1.1"`, 1))
				by.WaitForLocks = true
			}
			d.must(restore(t.Context(), by))
			d.wantWritten("then", "then")
			d.wantNodes(farUp)
			d.noRestore("completed", d.machine, other)
			if t.Failed() {
				t.Fatalf("%s: killed at %d", what, n)
			}
		}
	}
}

// TestFarRestoreWithout: if a host is left out, the nodes on the other hosts are restored. No node
// is created that may be on the missing host.
func TestFarRestoreWithout(t *testing.T) {
	d, other, to := backedUp(t)
	restore := func() error {
		_, err := backups.Restore(t.Context(), d.Session, to, control.RestoreOptions{Dir: d.dir, Replace: true})
		return err
	}
	d.Without = []string{"sv2"}
	d.must(restore())
	if told := d.watch.text(); !strings.Contains(told,
		"not restored, because they may be on sv2, whose state is unknown: web1, web2") ||
		strings.Contains(told, "no longer declares") {
		t.Errorf("told was %s", told)
	}
	d.Without = nil
	d.wantWritten("then", "now")
	d.wantNodes(farUp)
	d.noRestore("restored without sv2", d.machine, other)

	// The site file does not prove what is on a host that is left out.
	d.writeAll("now")
	moved := strings.Replace(twoHosts, `host  = "sv2"`, `host  = "sv1"`, 1)
	d.write("site.toml", moved)
	d.Without = []string{"sv2"}
	d.must(restore())
	if n := len(d.holders("web1", d.machine, other)); n != 1 {
		t.Errorf("%d hosts have web1", n)
	}
	more := strings.Replace(moved, "[node.db]",
		"[node.extra]\nid = 41\nroles = [\"db\"]\nhost = \"sv1\"\nnet.lan = \"auto\"\n[node.db]", 1)
	d.write("site.toml", more)
	d.Without = nil
	d.up()
	d.Without = []string{"sv2"}
	d.wantExit(restore(), problem.Refused, "not in the backup", "extra", "--node NAME --replace")
	d.write("site.toml", twoHosts)
	d.Without = nil
	d.up()
	_, err := sites.Down(t.Context(), d.Session, d.site(), []string{"db"}, false)
	d.must(err)
	d.Without = []string{"sv2"}
	d.wantExit(restore(), problem.Refused, "no node of the backup is on a host that answers",
		"remove the host from the copied site file")
}

// holders returns the machines that have a node.
func (d *desk) holders(node string, of ...*machine) (all []*machine) {
	d.Helper()
	for _, m := range of {
		nodes, err := m.of("toykat").List(d.Context(), "toykat")
		d.must(err)
		for _, n := range nodes {
			if n.Name == node {
				all = append(all, m)
			}
		}
	}
	return all
}

// TestFarRestoreDeadHost: what was on a lost host is restored on another one, if the site file says
// so. This works even if only one host is left.
func TestFarRestoreDeadHost(t *testing.T) {
	d, other, to := backedUp(t)
	third := newMachine(t)
	third.disk = true
	third.of("toykat").Addresses = []observe.Address{{Prefix: "10.8.1.3/24", Link: "eth0", MTU: 1500}}
	d.machine.others = map[string]*machine{"sv3": third}
	restore := func() {
		t.Helper()
		_, err := backups.Restore(t.Context(), d.Session, to, control.RestoreOptions{Dir: d.dir, Replace: true})
		d.must(err)
		d.wantWritten("then", "then")
		d.wantNodes(farUp)
		d.noRestore("restored", d.machine, third)
	}
	d.write("site.toml", strings.NewReplacer("[host.sv2]\naddress = \"ops@10.8.1.2:2222\"",
		"[host.sv3]\naddress = \"10.8.1.3\"", `host  = "sv2"`, "").Replace(twoHosts))
	restore()
	d.writeAll("now")
	d.write("site.toml", strings.NewReplacer("[host.sv2]\naddress = \"ops@10.8.1.2:2222\"", "", `host  = "sv2"`,
		"").Replace(twoHosts))
	restore()
	if len(d.holders("web1", other)) != 1 {
		t.Error("the host that was lost was touched")
	}
	d.writeAll("now")
	d.of("toykat.past").Addresses = d.of("toykat").Addresses
	_, err := backups.Restore(t.Context(), d.Session, to, control.RestoreOptions{Dir: d.dir, To: "past"})
	d.must(err)
	d.ofTwin("past").wantWritten("then", "then")
	d.wantWritten("now", "now")
}

// TestFarRestoreWithoutKilled: a restore without a host is completed without it, even if the host
// is back by then.
func TestFarRestoreWithoutKilled(t *testing.T) {
	for n := 1; ; n += 3 {
		d, other, to := backedUp(t)
		restore := func(ctx context.Context) error {
			_, err := backups.Restore(ctx, d.Session, to, control.RestoreOptions{Dir: d.dir, Replace: true})
			return err
		}
		d.Without = []string{"sv2"}
		d.machine.fault.KillAt(n)
		ctx, cancel := d.machine.fault.KillContext(t.Context())
		err := restore(ctx)
		cancel()
		d.Links.Close()
		d.machine.fault.Revive()
		if err == nil {
			if n < 8 {
				t.Errorf("it was over after %d operations", n)
			}
			return
		}
		d.WaitForLocks = true // the helper may still hold the lock
		part, err := backup.OpenPart(d.machine.dirs, nil, "toykat")
		d.must(err)
		if part != nil && part.AllStaged() && n%2 == 0 {
			d.Without = nil
		}
		d.must(restore(t.Context()))
		d.Without = nil
		d.wantWritten("then", "now")
		d.wantNodes(farUp)
		d.noRestore("completed", d.machine, other)
		if t.Failed() {
			t.Fatalf("killed at %d", n)
		}
	}
}

// TestFarRestoreTwin: a backup is restored as a twin beside the site, on its hosts, and the site is
// not affected. A failure leaves nothing.
func TestFarRestoreTwin(t *testing.T) {
	d, other, to := backedUp(t)
	for _, m := range []*machine{d.machine, other} {
		m.of("toykat.past").Addresses = m.of("toykat").Addresses
	}
	restore := func(replace bool) error {
		_, err := backups.Restore(t.Context(), d.Session, to,
			control.RestoreOptions{Dir: d.dir, To: "past", Replace: replace})
		return err
	}
	d.Without = []string{"sv2"}
	d.wantExit(restore(false), problem.Usage, "on all hosts")
	d.Without = nil
	session, ctx := *d.Session, t.Context()
	ctx, cancel := context.WithCancel(ctx)
	session.Watcher = breaker{d.watch, cancel}
	_, err := backups.Restore(ctx, &session, to, control.RestoreOptions{Dir: d.dir, To: "past"})
	d.wantExit(err, problem.Interrupted, "nothing was put in place")
	for _, m := range []*machine{d.machine, other} {
		if tree.Exists(m.dirs.Site("toykat.past")) {
			t.Error("something is left of a twin that was not restored")
		}
	}
	d.Links.Close()
	d.WaitForLocks = true // the helper may still hold the lock
	d.must(restore(false))
	past := d.ofTwin("past")
	past.wantWritten("then", "then")
	past.wantNodes(farUp)
	d.wantWritten("now", "now")
	d.wantNodes(farUp)
	p, err := sites.Preview(t.Context(), past.Session, nil, sites.PreviewOptions{})
	if err != nil || !p.Empty() {
		t.Errorf("a plan of it: %v, %v", p, err)
	}
	d.wantExit(restore(false), problem.Refused, "3 nodes and 1 volume of toykat.past")
	past.writeAll("now")
	d.must(restore(true))
	past.wantWritten("then", "then")
	d.wantWritten("now", "now")
	d.must(twins.Destroy(t.Context(), d.Session, "past"))
	for _, m := range []*machine{d.machine, other} {
		if tree.Exists(m.dirs.Site("toykat.past")) {
			t.Error("something is left of the twin")
		}
	}
	d.wantNodes(farUp)
}

// A breaker interrupts a restore when it stages its first bytes.
type breaker struct {
	*told
	stop func()
}

func (b breaker) Bytes(what string) control.ByteWatcher {
	if what != "restore" {
		return b.told.Bytes(what)
	}
	return b
}

func (b breaker) Add(int64) { b.stop() }

// TestFarRestoreTwinKilled: a host is lost at each point of restoring a twin. The site is not
// affected, and no node of the twin comes up without its data. The same command completes the twin.
func TestFarRestoreTwinKilled(t *testing.T) {
	for n := 1; ; n += 2 {
		d, other, to := backedUp(t)
		for _, m := range []*machine{d.machine, other} {
			m.of("toykat.past").Addresses = m.of("toykat").Addresses
		}
		restore := func(ctx context.Context) error {
			_, err := backups.Restore(ctx, d.Session, to, control.RestoreOptions{Dir: d.dir, To: "past"})
			return err
		}
		other.fault.KillAt(n)
		ctx, cancel := other.fault.KillContext(t.Context())
		err := restore(ctx)
		cancel()
		d.Links.Close()
		other.fault.Revive()
		if err == nil {
			if n < 5 {
				t.Errorf("it was over after %d operations", n)
			}
			return
		}
		d.WaitForLocks = true // the helper may still hold the lock
		past := d.ofTwin("past")
		s, err := past.Load()
		if err == nil {
			if _, _, err = sites.Up(t.Context(), past.Session, s, nil, sites.UpOptions{}); err != nil {
				d.wantExit(err, problem.Left, "orrery restore "+to, "--to past")
			}
		}
		if err != nil { // otherwise up has completed it
			d.must(restore(t.Context()))
		}
		past = d.ofTwin("past")
		past.up() // removes what killed runs left
		past.wantWritten("then", "then")
		past.wantNodes(farUp)
		d.wantWritten("now", "now")
		d.wantNodes(farUp)
		for _, m := range []*machine{d.machine, other} {
			if tree.Exists(backup.StagingDir(m.dirs, "toykat.past")) {
				t.Errorf("something of the restore is left")
			}
		}
		if t.Failed() {
			t.Fatalf("killed at %d", n)
		}
	}
}

// TestFarReplaceNode: one node is restored on its current host. The other nodes are not affected,
// and a failure changes nothing.
func TestFarReplaceNode(t *testing.T) {
	d, other, to := backedUp(t)
	other.fault.Fail("Start", "web1", 1, nil)
	_, err := backups.ReplaceNode(t.Context(), d.Session, to, "web1")
	d.wantExit(err, problem.Undone, "the previous state was restored")
	d.up()
	d.wantWritten("now", "now")
	_, err = backups.ReplaceNode(t.Context(), d.Session, to, "web9")
	d.wantExit(err, problem.Usage, "has no node web9")
	_, err = backups.ReplaceNode(t.Context(), d.Session, to, "web1")
	d.must(err)
	d.wantWritten("now", "then")
	_, err = backups.ReplaceNode(t.Context(), d.Session, to, "db")
	d.must(err)
	d.wantWritten("then", "then")
	d.wantNodes(farUp)
	d.noSnapshot("replaced", d.machine, other)
}

// has returns the last text that a running node has written.
func (d *desk) has(node string) string {
	d.Helper()
	in, err := way.Runner(d.Context(), d.Session, d.site(), node)
	d.must(err)
	var out strings.Builder
	d.must(in.Run(d.Context(), host.Command{Args: []string{"cat", motd}, Stdout: &out}))
	return out.String()
}

// TestFarBackupKept: a backup has stored releases without nodes. A release that does not belong to
// the site is left out and reported.
func TestFarBackupKept(t *testing.T) {
	d, _ := farDisks(t)
	d.write("site.toml", twoHosts+"[release.700]\n")
	d.stage(700)
	kept := filepath.Join(t.TempDir(), "kept")
	d.must(os.CopyFS(kept, os.DirFS(d.Dirs.Release("toykat", 700))))
	_, err := sites.Down(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
	d.up()
	f, err := d.Hosts(t.Context(), d.site())
	d.must(err)
	d.must(d.Connector(d.site()).Releases(f).Store(t.Context(), 700, kept))
	to := filepath.Join(t.TempDir(), "backups") + "/"
	take := func() (trees string, left []string) {
		t.Helper()
		taken, err := backups.Take(t.Context(), d.Session, nil, to, backups.Options{})
		d.must(err)
		v, _, err := vault.Open(to)
		d.must(err)
		defer v.Close()
		m, err := v.Manifest(taken.ID)
		d.must(err)
		for _, entry := range m.Trees {
			trees += " " + entry.Name
		}
		return trees, m.Left
	}
	if trees, left := take(); !strings.Contains(trees, "release/700") || len(left) != 1 {
		t.Errorf("in it are%s; left out was %q", trees, left)
	}
	d.must(os.Remove(filepath.Join(d.SiteDir, sitefile.LockName)))
	if trees, left := take(); strings.Contains(trees, "release/700") || len(left) != 2 ||
		!strings.Contains(strings.Join(left, "\n"), "release 700, which no node uses") {
		t.Errorf("in it are%s; left out was %q", trees, left)
	}
}
