package control_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/overdue"
	"orrery/internal/control/sites"
	"orrery/internal/control/twins"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// farTwin creates a twin of a site on two hosts.
func farTwin(t *testing.T, change func(*twin.Record)) (d *desk, other *machine) {
	t.Helper()
	d, other = farDesk(t)
	d.up()
	for _, m := range []*machine{d.machine, other} {
		m.of("toykat.dev").Addresses = m.of("toykat").Addresses
	}
	of := twinOf("toykat", d.dir, "dev")
	if change != nil {
		change(&of)
	}
	_, _, err := twins.Create(t.Context(), d.Session, of)
	d.must(err)
	return d, other
}

// TestFarTwin: a twin of a site with several hosts is on all of them. Every control host knows it
// and can destroy it.
func TestFarTwin(t *testing.T) {
	d, other := farTwin(t, nil)
	for name, m := range map[string]*machine{"db": d.machine, "web1": other} {
		nodes, err := m.of("toykat.dev").List(t.Context(), "toykat.dev")
		d.must(err)
		if len(nodes) == 0 || nodes[0].Name != name {
			t.Errorf("a host has %v of the twin, not %s", nodes, name)
		}
		if _, err := os.Stat(m.dirs.Site("toykat.dev") + "/twin.json"); err != nil {
			t.Error(err)
		}
	}
	_, _, err := twins.Create(t.Context(), d.Session, twinOf("toykat", d.dir, "dev"))
	d.wantExit(err, problem.Mistake, "already has a twin dev on sv1 and sv2")

	e := d.elsewhere(strings.Replace(twoHosts, `address = "local"`, `address = "10.8.1.1"`, 1)+"[release.700]\n",
		map[string]*machine{"sv1": d.machine, "sv2": other})
	all, silent, err := twins.List(t.Context(), e.Session)
	d.must(err)
	if silent != nil || len(all) != 1 || !reflect.DeepEqual(all[0].On, []string{"sv1", "sv2"}) || all[0].Nodes != 3 ||
		all[0].Running != 3 {
		t.Errorf("the twins are %+v, %v", all, silent)
	}
	of := e.ofTwin("dev")
	of.wantNodes("db none running healthy, web1 none running healthy, web2 none running healthy")
	p, err := sites.Preview(t.Context(), of.Session, nil, sites.PreviewOptions{})
	if err != nil || !p.Empty() {
		t.Errorf("a plan from elsewhere: %v, %v", p, err)
	}
	of.stage(700)
	if lock := e.lock(); !strings.Contains(lock, "[twin.dev.release]\n700 = \"sha256:") ||
		strings.Contains(lock, "\n[release]") {
		t.Errorf("releases.lock is %s", lock)
	}
	of.turnTo(700)
	of.wantNodes("db 700 running healthy, db* none running retired, web1 700 running healthy, web1* none running healthy, web2 700 running healthy, web2* none running healthy")
	d.wantNodes("db none running healthy, web1 none running healthy, web2 none running healthy")
	e.wantExit(twins.Destroy(t.Context(), e.Session, "dave"), problem.Mistake, "no twin \"dave\"", "did you mean dev?")
	e.must(twins.Destroy(t.Context(), e.Session, "dev"))
	for _, m := range []*machine{d.machine, other} {
		nodes, err := m.of("toykat.dev").List(t.Context(), "toykat.dev")
		if _, statErr := os.Stat(m.dirs.Site("toykat.dev")); err != nil || len(nodes) > 0 || statErr == nil {
			t.Errorf("left is %v", nodes)
		}
	}
	if _, err := os.Stat(e.dirs.State); err == nil {
		t.Error("where the twin was only steered from, something is kept")
	}
	if lock := e.lock(); strings.Contains(lock, "dev") {
		t.Errorf("releases.lock is %s", lock)
	}
	d.wantNodes("db none running healthy, web1 none running healthy, web2 none running healthy")
}

// TestFarTwinExpires: each host waits for the end of a twin on its own, and destroys its part. A
// verb that comes before all hosts have done so reports that.
func TestFarTwinExpires(t *testing.T) {
	d, other := farTwin(t, func(r *twin.Record) { r.Expires = time.Now().Add(time.Hour) })
	for _, m := range []*machine{d.machine, other} {
		if w, _ := m.Waiting(); len(w) != 1 || w[0].Name != "expiry-toykat.dev" {
			t.Errorf("waiting are %v", w)
		}
	}
	// The second host was off. When it is reached again, a process waits there.
	b := newDesk(t)
	b.machine = other
	b.Dirs, b.Machine = other.dirs, other
	d.must(other.Cancel("expiry-toykat.dev"))
	overdue.RestartWaiters(t.Context(), b.Session)
	if w, _ := other.Waiting(); len(w) != 1 {
		t.Errorf("waiting are %v", w)
	}
	over := time.Now().Add(-time.Minute)
	for _, m := range []*machine{d.machine, other} { // and now the time is over
		d.expired(m, over)
	}
	of := d.ofTwin("dev")
	_, _, err := sites.Up(t.Context(), of.Session, of.site(), nil, sites.UpOptions{})
	d.wantExit(err, problem.Surprise, "expired at")
	d.must(control.Unattended(b.Session, "toykat.dev").Run(t.Context(), apply.TriggerExpiry, ""))
	all, _, err := twins.List(t.Context(), d.Session)
	d.must(err)
	if len(all) != 1 || !reflect.DeepEqual(all[0].On, []string{"sv1"}) || all[0].Nodes != 1 {
		t.Errorf("left is %+v", all)
	}
	d.wantExit(twins.DestroyLocal(t.Context(), d.Session, "toykat.dove"), problem.Mistake, "toykat.dove")
	d.must(twins.DestroyLocal(t.Context(), d.Session, "toykat.dev"))
	d.wantNodes("db none running healthy, web1 none running healthy, web2 none running healthy")
}

// TestFarTwinRefused: invalid requests are refused before anything is created.
func TestFarTwinRefused(t *testing.T) {
	d, other := farDesk(t)
	d.up()
	of := twinOf("toykat", d.dir, "dev")
	d.Links.Close()
	d.machine.others = nil
	_, _, err := twins.Create(t.Context(), d.Session, of)
	d.wantExit(err, problem.Failed, "nobody answers")
	for _, m := range []*machine{d.machine, other} {
		if _, err := os.Stat(m.dirs.Site("toykat.dev")); err == nil {
			t.Error("something is there of it")
		}
	}
}

// TestFarTwinVolumes: each host copies the volumes of its nodes, and the nodes of the twin are
// placed where their volumes are. After a failure on one host, only that host is asked again.
func TestFarTwinVolumes(t *testing.T) {
	d, other := farDesk(t)
	d.write("roles/web/role.toml", "[[volume]]\nname = \"pages\"\npath = \"/srv/pages\"\n")
	d.write("site.toml", strings.Replace(twoHosts, "[network.far]", "[volume.pages]\n[network.far]", 1))
	d.up()
	// from now on nodes may be on any host, and stay where they are
	d.write("site.toml", strings.Replace(string(d.read("site.toml")), "host  = \"sv2\"\nnet.far", "net.far", 1))
	at := func(m *machine, key, volume, node string) string {
		return filepath.Join(m.dirs.Volumes(key), volume, node, "book")
	}
	text := func(path string) string {
		text, _ := os.ReadFile(path)
		return string(text)
	}
	for path, content := range map[string]string{at(d.machine, "toykat", "archive", "db"): "paid",
		at(other, "toykat", "pages", "web1"): "one", at(other, "toykat", "pages", "web2"): "two"} {
		d.must(os.WriteFile(path, []byte(content), 0o644))
	}
	for _, m := range []*machine{d.machine, other} {
		m.of("toykat.dev").Addresses = m.of("toykat").Addresses
	}
	other.fault.Fail("Freeze", "web2", 1, nil)
	of := twinOf("toykat", d.dir, "dev")
	of.Volumes = site.CopySnapshot
	_, _, err := twins.Create(t.Context(), d.Session, of)
	d.wantExit(err, problem.Failed, "injected")
	if text(at(d.machine, "toykat.dev", "archive", "db")) != "paid" ||
		text(at(other, "toykat.dev", "pages", "web2")) != "" {
		t.Error("a copy that failed is there, or one that did not is not")
	}
	d.must(os.WriteFile(at(d.machine, "toykat", "archive", "db"), []byte("paid twice"), 0o644))
	twin := d.ofTwin("dev")
	twin.up()
	twin.wantNodes("db none running healthy, web1 none running -, web2 none running -")
	if nodes, err := other.of("toykat.dev").List(t.Context(), "toykat.dev"); err != nil || len(nodes) != 2 {
		t.Errorf("beside the volumes of web1 and web2 are %v, %v", nodes, err)
	}
	for path, want := range map[string]string{
		at(d.machine, "toykat.dev", "archive", "db"): "paid", at(other, "toykat.dev", "pages", "web1"): "one",
		at(other, "toykat.dev", "pages", "web2"): "two", at(d.machine, "toykat.dev", "pages", "web1"): "",
	} {
		if got := text(path); got != want {
			t.Errorf("%s: %q, not %q", path, got, want)
		}
	}
	d.must(os.WriteFile(at(other, "toykat.dev", "pages", "web1"), []byte("of the twin"), 0o644))
	twin.up()
	if got := text(at(other, "toykat.dev", "pages", "web1")); got != "of the twin" {
		t.Errorf("a second run leaves %q", got)
	}
	d.write("site.toml", strings.Replace(string(d.read("site.toml")), "id    = 21", "id    = 21\nhost  = \"sv1\"", 1))
	of = twinOf("toykat", d.dir, "elsewhere")
	of.Volumes = site.CopySnapshot
	_, _, err = twins.Create(t.Context(), d.Session, of)
	d.wantExit(err, problem.Unable, "node web1 is on host sv2 with its volumes", "orrery move web1 --to sv1")
}

// programTwin returns a twin of a site on two hosts whose volumes are filled by a program.
func programTwin(t *testing.T, program string) (d *desk, other *machine, of twin.Record) {
	t.Helper()
	d, other = farDesk(t)
	d.write("roles/web/role.toml", "[[volume]]\nname = \"pages\"\npath = \"/srv/pages\"\n")
	d.write("site.toml", strings.Replace(strings.Replace(twoHosts, "[network.far]", "[volume.pages]\n[network.far]", 1),
		"host  = \"sv2\"\nnet.far", "net.lan", 1))
	for _, m := range []*machine{d.machine, other} {
		m.of("toykat.dev").Addresses = m.of("toykat").Addresses
	}
	t.Setenv("TMPDIR", t.TempDir())
	of = twinOf("toykat", d.dir, "dev")
	of.Volumes = filepath.Join(d.dir, "fill")
	d.must(os.WriteFile(of.Volumes, []byte("#!/bin/sh\n"+program), 0o755))
	return d, other, of
}

// leftHere returns what is left in the staging directory for volumes.
func leftHere() []string {
	left, _ := filepath.Glob(os.Getenv("TMPDIR") + "/*")
	hidden, _ := filepath.Glob(os.Getenv("TMPDIR") + "/.*")
	return append(left, hidden...)
}

// TestFarTwinProgram: a program fills the volumes of a twin on the caller's machine, in the order
// of its nodes. Each volume is sent to the host of its node with all its content.
func TestFarTwinProgram(t *testing.T) {
	d, other, of := programTwin(t, `set -e
echo "$1 $2" >>"$(dirname "$0")/calls"
mkdir -m 750 "$3/deep"
echo "$1 of $2" >"$3/deep/rows"
ln -s /etc/passwd "$3/link"
chmod 711 "$3"
head -c 3000000 /dev/zero | tr '\0' 'x' >"$3/large"
`)
	_, _, err := twins.Create(t.Context(), d.Session, of)
	d.must(err)
	if calls := string(d.read("calls")); calls != "archive db\npages web1\npages web2\n" {
		t.Errorf("it is called with %q", calls)
	}
	twin := d.ofTwin("dev")
	twin.wantNodes("db none running healthy, web1 none running -, web2 none running -")
	for name, volume := range map[string]string{"db": "archive", "web1": "pages", "web2": "pages"} {
		on := 0
		for _, m := range []*machine{d.machine, other} {
			dir := filepath.Join(m.dirs.Volumes("toykat.dev"), volume, name)
			if _, err := os.Stat(dir); err != nil {
				continue
			}
			on++
			if nodes, err := m.of("toykat.dev").List(t.Context(), "toykat.dev"); err != nil ||
				!slices.ContainsFunc(nodes, func(n observe.Node) bool { return n.Name == name }) {
				t.Errorf("%s is not where its volume is, but %v (%v)", name, nodes, err)
			}
			text, err := os.ReadFile(filepath.Join(dir, "deep/rows"))
			if err != nil || string(text) != volume+" of "+name+"\n" {
				t.Errorf("%s has %q, %v", name, text, err)
			}
			info, err := os.Stat(dir)
			d.must(err)
			deep, err := os.Stat(dir + "/deep")
			d.must(err)
			large, err := os.Stat(dir + "/large")
			d.must(err)
			if to, _ := os.Readlink(dir + "/link"); info.Mode().Perm() != 0o711 || deep.Mode().Perm() != 0o750 ||
				large.Size() != 3000000 || to != "/etc/passwd" {
				t.Errorf("%s has %v, %v, %d bytes, and a link to %q", name, info.Mode(), deep.Mode(), large.Size(), to)
			}
		}
		if on != 1 {
			t.Errorf("the volume of %s is on %d hosts", name, on)
		}
	}
	if left := leftHere(); len(left) > 0 {
		t.Errorf("left is %q", left)
	}
	for _, m := range []*machine{d.machine, other} {
		if left, _ := filepath.Glob(m.dirs.Arrivals("toykat.dev") + "/*"); len(left) > 0 {
			t.Errorf("left is %q", left)
		}
	}
	d.must(os.Remove(of.Volumes)) // it is not run again
	twin.up()
	if p, err := sites.Preview(t.Context(), twin.Session, nil, sites.PreviewOptions{}); err != nil || !p.Empty() {
		t.Errorf("a plan then: %v, %v", p, err)
	}
}

// TestFarTwinProgramFails: if the program fails, no node comes up. It is not run again because of
// the hosts' records, since those could name any program of this machine.
//
// Promise (Other hosts): No host decides which program of the control host fills a twin's volumes,
// and no volume sent to a host lands beside that of a node. With apply/filling.TestLay.
func TestFarTwinProgramFails(t *testing.T) {
	d, other, of := programTwin(t,
		`echo "$2" >>"$(dirname "$0")/calls"; [ "$2" = db ] || { echo "no data for $2"; exit 3; }`)
	_, _, err := twins.Create(t.Context(), d.Session, of)
	d.wantExit(err, problem.Failed, "no data for web1")
	if !strings.Contains(err.Error(), "orrery twin destroy dev") {
		t.Errorf("no cure: %v", err)
	}
	for _, m := range []*machine{d.machine, other} {
		if nodes, err := m.of("toykat.dev").List(t.Context(), "toykat.dev"); err != nil || len(nodes) > 0 {
			t.Errorf("there are %v (%v)", nodes, err)
		}
	}
	d.must(os.Remove(filepath.Join(d.dir, "calls")))
	twin := d.ofTwin("dev")
	_, _, err = sites.Up(t.Context(), twin.Session, twin.site(), nil, sites.UpOptions{})
	d.wantExit(err, problem.Unable, "not filled completely")
	if _, err := os.Stat(filepath.Join(d.dir, "calls")); err == nil {
		t.Error("it was run again")
	}
	if left := leftHere(); len(left) > 0 {
		t.Errorf("left is %q", left)
	}
	d.must(twins.Destroy(t.Context(), d.Session, "dev"))
	d.must(os.WriteFile(of.Volumes, []byte("#!/bin/sh\n"), 0o755))
	existing := filepath.Join(other.dirs.Volumes("toykat.dev"), "pages", "web2")
	d.must(os.MkdirAll(existing, 0o755))
	_, _, err = twins.Create(t.Context(), d.Session, of)
	d.wantExit(err, problem.Failed, "host sv2", "volume pages of node web2 already exists")
	if left := leftHere(); len(left) > 0 {
		t.Errorf("left is %q", left)
	}
	d.must(twins.Destroy(t.Context(), d.Session, "dev"))
	_, _, err = twins.Create(t.Context(), d.Session, of)
	d.must(err)
}
