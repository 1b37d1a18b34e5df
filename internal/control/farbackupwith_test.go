package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/control"
	"orrery/internal/control/backups"
	"orrery/internal/control/sites"
	"orrery/internal/control/snapshots"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/snapshot"
)

// fillLayers adds a file and a content digest to each layer in the stores of machines, like a
// build. The content of a layer is the same on all machines.
func (d *desk) fillLayers(on ...*machine) {
	d.Helper()
	for _, m := range on {
		store := image.Open(m.dirs.State)
		all, err := store.Layers()
		d.must(err)
		for digest := range all {
			at := store.Tree(digest)
			d.must(host.WriteFile(host.File{Path: filepath.Join(at, "opt", "of"), Content: []byte(digest), Mode: 0o644}))
			r, err := store.Record(digest)
			d.must(err)
			r.Content = d.contentOf(at)
			text, err := json.Marshal(r)
			d.must(err)
			d.must(os.WriteFile(filepath.Join(store.Dir, digest, "layer.json"), text, 0o600))
		}
	}
}

var saysDigest = regexp.MustCompile(`its content has the digest ([0-9a-f]+) instead`)

// contentOf returns the digest of a layer's content, as reported by a store that is given another
// digest.
func (d *desk) contentOf(tree string) string {
	d.Helper()
	err := image.Open(d.TempDir()).
		Adopt(d.Context(), &image.Record{Digest: "abc", Content: "0"},
			func(to string) error { return os.CopyFS(to, os.DirFS(tree)) })
	if err == nil {
		d.Fatal("a layer of another content was taken")
	}
	found := saysDigest.FindStringSubmatch(err.Error())
	if found == nil {
		d.Fatal(err)
	}
	return found[1]
}

// ofHosts returns the trees of a kind in a backup, or in the last one if id is "". Each tree has
// the host that sent it.
func (d *desk) ofHosts(to, id, kind string) (all []vault.Tree) {
	d.Helper()
	v, _, err := vault.Open(to)
	d.must(err)
	if id == "" {
		all, err := v.Backups()
		d.must(err)
		id = all[len(all)-1]
	}
	m, err := v.Manifest(id)
	d.must(errors.Join(err, v.Verify(d.Context(), id, func(int64) {}), v.Close()))
	return slices.DeleteFunc(m.Trees, func(t vault.Tree) bool { return t.Kind != kind })
}

// newHosts returns a desk of the same site on machines that have never had it.
func newHosts(t *testing.T, source *desk) (d *desk, other *machine) {
	t.Helper()
	d, other = diskDesk(t), newMachine(t)
	other.disk = true
	d.machine.others = map[string]*machine{"sv2": other}
	d.must(os.RemoveAll(d.dir))
	d.must(os.CopyFS(d.dir, os.DirFS(source.dir)))
	d.of("toykat").Addresses, other.of("toykat").Addresses = source.of("toykat").
		Addresses, source.machine.others["sv2"].of("toykat").Addresses
	return d, other
}

// TestFarBackupLayers: each layer is sent by one host, and by the same host the next time. Hosts
// that lack a layer receive it only with the operator's consent.
func TestFarBackupLayers(t *testing.T) {
	d, other := farDisks(t)
	for role, apt := range map[string]string{"db": "cron", "web": "nginx"} {
		text, err := os.ReadFile(filepath.Join(d.dir, "roles", role, "role.toml"))
		d.must(err)
		d.write("roles/"+role+"/role.toml", "apt = [\""+apt+"\"]\n"+string(text))
	}
	d.up()
	d.fillLayers(d.machine, other)
	d.writeAll("then")
	to := filepath.Join(t.TempDir(), "backups") + "/"
	take := func() *backups.Taken {
		t.Helper()
		taken, err := backups.Take(t.Context(), d.Session, nil, to, backups.Options{Layers: true})
		d.must(err)
		return taken
	}
	first := take()
	trees, gave := d.ofHosts(to, first.ID, vault.LayerTree), map[string]int{}
	for i := range trees {
		gave[trees[i].Host]++
	}
	if len(trees) < 3 || gave["sv1"] == 0 || gave["sv2"] == 0 || !first.Layers {
		t.Errorf("the hosts gave %v", gave)
	}
	second := take()
	again := d.ofHosts(to, second.ID, vault.LayerTree)
	if len(again) != len(trees) {
		t.Fatalf("first %d layers are in it, then %d", len(trees), len(again))
	}
	for i := range trees {
		if trees[i].Layer != again[i].Layer || trees[i].Host != again[i].Host {
			t.Errorf("layer %s came from %s, then from %s", trees[i].Layer, trees[i].Host, again[i].Host)
		}
	}

	restore := func(trust bool) (at *desk, on []*machine) {
		t.Helper()
		at, far := newHosts(t, d)
		_, err := backups.Restore(t.Context(), at.Session, to, control.RestoreOptions{Dir: at.dir, TrustLayers: trust})
		at.must(err)
		at.wantWritten("then", "then")
		at.wantNodes(farUp)
		at.noRestore("restored with layers", at.machine, far)
		return at, []*machine{at.machine, far}
	}
	const from = "not from the backup"
	built, on := restore(false)
	if !strings.Contains(built.watch.text(), from) {
		t.Errorf("told was %s", built.watch.text())
	}
	for _, m := range on {
		if got := m.hasLayers(trees); got != 0 {
			t.Errorf("%d layers came from a backup that is not trusted", got)
		}
	}
	trusted, on := restore(true)
	if strings.Contains(trusted.watch.text(), from) {
		t.Errorf("told was %s", trusted.watch.text())
	}
	one, two := on[0].hasLayers(trees), on[1].hasLayers(trees)
	if one == 0 || two == 0 || one == len(trees) || two == len(trees) || one+two <= len(trees) {
		t.Errorf("of %d layers, the hosts got %d and %d", len(trees), one, two)
	}

	// A layer that differs from what its host reported is not stored, and nothing is restored.
	var bad string
	for i := range trees {
		if trees[i].Host == "sv2" {
			bad = trees[i].Layer
		}
	}
	d.must(os.WriteFile(filepath.Join(image.Open(other.dirs.State).Tree(bad), "opt", "of"), []byte("evil"), 0o644))
	third := take()
	at, far := newHosts(t, d)
	_, err := backups.Restore(t.Context(), at.Session, third.Title, control.RestoreOptions{Dir: at.dir, TrustLayers: true})
	if err == nil || !strings.Contains(err.Error(), bad) ||
		!strings.Contains(err.Error(), "differs from what was built") ||
		!strings.Contains(err.Error(), "without --trust-layers, the layer is built") {
		t.Errorf("a layer that is not as it was built: %v", err)
	}
	at.noRestore("a layer that is not as it was built", at.machine, far)
}

// hasLayers counts the layers of a backup that a machine has unchanged.
func (m *machine) hasLayers(trees []vault.Tree) (n int) {
	for i := range trees {
		text, err := os.ReadFile(filepath.Join(image.Open(m.dirs.State).Tree(trees[i].Layer), "opt", "of"))
		if err == nil && string(text) == trees[i].Layer {
			n++
		}
	}
	return n
}

// shelved returns a site on two hosts with a snapshot, and a backup that includes it.
func shelved(t *testing.T) (d *desk, other *machine, to, id string) {
	t.Helper()
	d, other = farDisks(t)
	d.writeAll("past")
	taken, err := snapshots.Take(t.Context(), d.Session, d.site(), nil, snapshots.Extras{})
	d.must(err)
	d.keepMemory(taken.ID)
	d.writeAll("then")
	to = filepath.Join(t.TempDir(), "backups") + "/"
	_, err = backups.Take(t.Context(), d.Session, nil, to, backups.Options{Snapshots: true})
	d.must(err)
	d.writeAll("now")
	return d, other, to, taken.ID
}

// wantShelved wants that a site has come back as it was, with its snapshot, which can be put back.
func (d *desk) wantShelved(id string, hosts ...string) {
	d.Helper()
	d.wantWritten("then", "then")
	all, err := snapshots.List(d.Context(), d.Session, d.site())
	if err != nil || len(all) != 1 || all[0].ID != id || len(all[0].Nodes) != 3 || len(all[0].Volumes) != 1 ||
		all[0].Lacking != nil || !slices.Equal(all[0].Hosts, hosts) {
		d.Fatalf("there are %+v: %v", all, err)
	}
	back, err := snapshots.Restore(d.Context(), d.Session, d.site(), id, nil)
	d.must(err)
	if back.Nodes != 3 {
		d.Errorf("put back was %+v", back)
	}
	d.wantWritten("past", "past")
	d.wantNodes(farUp)
}

// TestFarBackupSnapshots: each part of a snapshot is restored on the host that has its nodes now.
func TestFarBackupSnapshots(t *testing.T) {
	d, other, to, id := shelved(t)
	var on []string
	for _, tree := range d.ofHosts(to, "", vault.SnapshotTree) {
		on = append(on, tree.Name+"@"+tree.Host)
	}
	if got, want := strings.Join(on, " "), "snapshot/"+id+"/sv1@sv1 snapshot/"+id+"/sv2@sv2"; got != want {
		t.Errorf("in it are %s", got)
	}
	restore := func(at *desk) {
		t.Helper()
		_, err := backups.Restore(t.Context(), at.Session, to, control.RestoreOptions{Dir: at.dir, Replace: true})
		at.must(err)
	}
	restore(d) // in place of the existing site
	d.wantShelved(id, "sv1", "sv2")
	d.noRestore("restored", d.machine, other)
	d.must(snapshots.Remove(t.Context(), d.Session, d.site(), []string{id}))
	restore(d)
	d.wantShelved(id, "sv1", "sv2")

	at, _ := newHosts(t, d)
	restore(at)
	at.wantShelved(id, "sv1", "sv2")

	at, far := newHosts(t, d) // db and web1 have changed places, and web2 is beside db
	at.write("site.toml", strings.Replace(strings.Replace(strings.Replace(twoHosts, `"sv2"`+"\nnet.far",
		`""`+"\nnet.far", 1), `host  = "sv1"`, `host  = "sv2"`, 1), `host  = ""`, `host  = "sv1"`, 1))
	restore(at)
	at.wantShelved(id, "sv1", "sv2")
	if n, err := snapshot.Open(far.dirs, "toykat", id); err != nil || len(n.Nodes) != 1 ||
		n.Nodes[0].Record.Name != "db" || len(n.Volumes) != 1 || n.Nodes[0].Memory {
		t.Errorf("of db, sv2 has %+v: %v", n, err)
	}

	at, _ = newHosts(t, d) // a host is lost
	at.write("site.toml", strings.NewReplacer("[host.sv2]\naddress = \"ops@10.8.1.2:2222\"", "", `host  = "sv2"`,
		"").Replace(twoHosts))
	restore(at)
	at.wantShelved(id, "sv1")
}

// TestFarBackupSnapshotsMoved: a host's snapshot of a node that has moved away since is not
// restored, and that is reported.
func TestFarBackupSnapshotsMoved(t *testing.T) {
	d, other, _, id := shelved(t)
	d.must(os.Rename(filepath.Join(other.dirs.Snapshots("toykat"), id),
		filepath.Join(d.machine.dirs.Snapshots("toykat"), id+"-old")))
	s, err := snapshot.Open(d.machine.dirs, "toykat", id+"-old")
	d.must(err)
	s.ID = id + "-old"
	// sv1 claims to have kept the nodes of sv2
	d.must(host.WriteJSON(filepath.Join(s.Dir, "snapshot.json"), 0o600, s))
	to := filepath.Join(t.TempDir(), "backups") + "/"
	_, err = backups.Take(t.Context(), d.Session, nil, to, backups.Options{Snapshots: true})
	d.must(err)
	at, far := newHosts(t, d)
	_, err = backups.Restore(t.Context(), at.Session, to, control.RestoreOptions{Dir: at.dir})
	at.must(err)
	if told := at.watch.text(); !strings.Contains(told, "not restored from snapshot "+id+"-old: the parts of web1, web2") {
		t.Errorf("told was %s", told)
	}
	at.noSnapshot("a snapshot of nodes of others", far)
	all, err := snapshots.List(t.Context(), at.Session, at.site())
	if err != nil || len(all) != 1 || all[0].ID != id || len(all[0].Nodes) != 1 || all[0].Lacking != nil {
		t.Errorf("there are %+v: %v", all, err)
	}
}

// TestFarRestoreSnapshotsKilled: a host is lost at each point of a restore. The snapshots are
// restored with the data of their nodes, whichever verb completes the restore.
func TestFarRestoreSnapshotsKilled(t *testing.T) {
	for n := 1; ; n += 3 {
		d, other, to, id := shelved(t)
		restore := func(ctx context.Context) error {
			_, err := backups.Restore(ctx, d.Session, to, control.RestoreOptions{Dir: d.dir, Replace: true})
			return err
		}
		d.must(snapshots.Remove(t.Context(), d.Session, d.site(), []string{id}))
		other.fault.KillAt(n)
		ctx, cancel := other.fault.KillContext(t.Context())
		err := restore(ctx)
		cancel()
		d.Links.Close()
		other.fault.Revive()
		d.WaitForLocks = true // the helper may still hold the lock
		over := err == nil
		if !over {
			if _, _, err = sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{}); err != nil ||
				d.has("web1") == "now" {
				d.must(restore(t.Context()))
			}
			d.up() // removes what killed runs left
		}
		d.wantShelved(id, "sv1", "sv2")
		d.noRestore("completed", d.machine, other)
		if t.Failed() {
			t.Fatalf("killed at %d", n)
		}
		if over {
			if n < 8 {
				t.Errorf("it was over after %d operations", n)
			}
			return
		}
	}
}

// TestFarRepair: lost data of a vault is requested only from the hosts that sent it. It stays lost
// as long as its host does not answer.
func TestFarRepair(t *testing.T) {
	d, other, to, _ := shelved(t)
	d.fillLayers(d.machine, other)
	time.Sleep(100 * time.Millisecond) // lists do not record times of very recent changes
	taken, err := backups.Take(t.Context(), d.Session, nil, to, backups.Options{Layers: true, Snapshots: true})
	d.must(err)
	rot := func() {
		t.Helper()
		blocks, err := filepath.Glob(filepath.Join(to, "blocks", "*", "*"))
		if err != nil || len(blocks) < 4 {
			t.Fatal(blocks, err)
		}
		for _, path := range blocks {
			d.must(errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("rotten"), 0o600)))
		}
	}
	repair := func() []backup.RepairedBackup {
		t.Helper()
		done, err := backups.Repair(t.Context(), d.Session, to, nil)
		d.must(err)
		return done.Backups
	}
	last := func(all []backup.RepairedBackup) *backup.RepairedBackup {
		t.Helper()
		for i := range all {
			if all[i].ID == taken.ID {
				return &all[i]
			}
		}
		t.Fatalf("there is no backup %s in %+v", taken.ID, all)
		return nil
	}
	rot()
	d.machine.others = map[string]*machine{}
	d.Links.Close()
	lost := last(repair()).After
	if !strings.Contains(lost.String(), "node web1: all of it") || strings.Contains(lost.String(), "node db") ||
		strings.Contains(lost.String(), "/sv1") || strings.Contains(lost.String(), "site: ") {
		t.Errorf("without sv2, lost is %s", lost.String())
	}
	if !strings.Contains(d.watch.text(), "not all hosts are searched for the damaged data: ") {
		t.Errorf("told was %s", d.watch.text())
	}
	d.machine.others["sv2"] = other
	if now := last(repair()); !now.After.IsEmpty() || now.Before.IsEmpty() {
		t.Errorf("with all hosts, lost is %s", now.After.String())
	}
	d.ofHosts(to, taken.ID, vault.LayerTree) // verifies them
	rot()
	d.say("web1", motd, "another")
	if now := last(repair()).After; now.String() != "node web1: all of it" {
		t.Errorf("after a node has changed, lost is %s", now.String())
	}
}
