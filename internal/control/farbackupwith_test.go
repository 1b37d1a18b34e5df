package control_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"orrery/internal/backup/vault"
	"orrery/internal/control"
	"orrery/internal/control/backups"
	"orrery/internal/host"
	"orrery/internal/image"
)

// fillLayers gives each layer in the stores of machines a file and the digest of what is in it, as a build would. What is in a layer is the same everywhere.
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

// contentOf gives the digest of what is in a layer, by what a store says that is told another one.
func (d *desk) contentOf(tree string) string {
	d.Helper()
	err := image.Open(d.TempDir()).Adopt(d.Context(), &image.Record{Digest: "abc", Content: "0"}, func(to string) error { return os.CopyFS(to, os.DirFS(tree)) })
	if err == nil {
		d.Fatal("a layer of another content was taken")
	}
	found := saysDigest.FindStringSubmatch(err.Error())
	if found == nil {
		d.Fatal(err)
	}
	return found[1]
}

// ofHosts gives the trees of a kind in a backup, each with the host that gave it.
func (d *desk) ofHosts(to, id, kind string) (all []vault.Tree) {
	d.Helper()
	v, _, err := vault.Open(to)
	d.must(err)
	m, err := v.Manifest(id)
	d.must(errors.Join(err, v.Verify(d.Context(), id, func(int64) {}), v.Close()))
	return slices.DeleteFunc(m.Trees, func(t vault.Tree) bool { return t.Kind != kind })
}

// newHosts gives a desk of the same site on machines that have never seen it.
func newHosts(t *testing.T, was *desk) (d *desk, other *machine) {
	t.Helper()
	d, other = diskDesk(t), newMachine(t)
	other.disk = true
	d.machine.others = map[string]*machine{"sv2": other}
	d.must(os.RemoveAll(d.dir))
	d.must(os.CopyFS(d.dir, os.DirFS(was.dir)))
	d.of("toykat").Addresses, other.of("toykat").Addresses = was.of("toykat").Addresses, was.machine.others["sv2"].of("toykat").Addresses
	return d, other
}

// TestFarBackupLayers: each layer comes from one host, and from the same the next time; hosts that lack it get it only if the operator says so.
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

	// A layer that differs from what a host says that has it comes to no store, and nothing is restored.
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
	if err == nil || !strings.Contains(err.Error(), bad) || !strings.Contains(err.Error(), "is not as it was built") {
		t.Errorf("a layer that is not as it was built: %v", err)
	}
	at.noRestore("a layer that is not as it was built", at.machine, far)
}

// hasLayers counts the layers that a machine has as they were in a backup.
func (m *machine) hasLayers(trees []vault.Tree) (n int) {
	for i := range trees {
		text, err := os.ReadFile(filepath.Join(image.Open(m.dirs.State).Tree(trees[i].Layer), "opt", "of"))
		if err == nil && string(text) == trees[i].Layer {
			n++
		}
	}
	return n
}
