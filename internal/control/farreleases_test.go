package control_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"orrery/internal/apply"
	"orrery/internal/control/releases"
	"orrery/internal/control/sites"
	"orrery/internal/control/way"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/treesync/sitearchive"
)

// elsewhere returns another control host for the machines of a desk. It has only a site directory.
func (d *desk) elsewhere(text string, others map[string]*machine) *desk {
	d.Helper()
	e := newDesk(d.T)
	e.machine.others = others
	e.write("site.toml", text)
	return e
}

const (
	fromElsewhere = toykat + "[host.sv1]\naddress = \"10.8.1.1\"\n"
	secondHost    = "[host.sv2]\naddress = \"10.8.1.2\"\n"
)

// TestFarReleases: the hosts store which releases are live, and what they were staged from. Another
// control host finds this, and so does a host that joins the site.
func TestFarReleases(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // other tests leave files in the common directory
	d, other := newDesk(t), newMachine(t)
	d.write("site.toml", strings.Replace(fromElsewhere, "10.8.1.1", "local", 1))
	d.up()
	d.write("roles/web/role.toml", "[[health]]\ncommand = [\"ask\", \"newer\"]\n")
	d.stage(700)
	d.turnTo(700)
	hosts := map[string]*machine{"sv1": d.machine}
	e := d.elsewhere(fromElsewhere, hosts)
	_, err := sites.Preview(t.Context(), e.Session, nil, sites.PreviewOptions{})
	e.wantExit(err, problem.Refused, "releases.lock: release 700 is not in it", "the copy of that release on sv1 cannot be verified",
		"orrery release trust 700")
	e.trust(700)
	e.wantNodes("db 700 running healthy, db* none running retired, web1 700 running healthy, web1* none running healthy, web2 700 running healthy, web2* none running healthy")
	p, err := sites.Preview(t.Context(), e.Session, nil, sites.PreviewOptions{})
	if err != nil || !p.Empty() {
		t.Fatalf("a plan from elsewhere: %v\n%v\ntold: %s", err, p, e.watch.text())
	}
	if _, err := os.Stat(e.dirs.Site("toykat")); err == nil {
		t.Error("where the site is only steered from, something is kept of it")
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "orrery-release-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind is %v", left)
	}

	hosts["sv2"] = other
	withSecond := strings.ReplaceAll(fromElsewhere, "roles  =", "host = \"sv1\"\nroles  =") + secondHost
	e.write("site.toml", withSecond)
	// Only the records of the second host need an update.
	if _, _, err = sites.Up(t.Context(), e.Session, e.site(), nil, sites.UpOptions{}); err != nil ||
		!strings.Contains(e.watch.text(), "host sv2 had outdated records of live releases") {
		t.Fatalf("the second host: %v\ntold: %s", err, e.watch.text())
	}
	on := func(name string) *apply.HostClient {
		t.Helper()
		f, err := e.Hosts(t.Context(), e.site())
		e.must(err)
		h, _ := f.Host(name)
		return h
	}
	read := func(name string) observe.Releases {
		t.Helper()
		r, err := on(name).Releases.Read(t.Context())
		e.must(err)
		return r
	}
	if one, two := read("sv1"), read("sv2"); one.State() != two.State() || two.Active["web1"] != 700 ||
		len(two.Staged) != 1 || two.Former["web1"] != one.Former["web1"] {
		t.Errorf("on record are %+v and %+v", one, two)
	}
	kept, err := os.ReadFile(filepath.Join(other.dirs.Release("toykat", 700), "site/roles/web/role.toml"))
	if err != nil || !strings.Contains(string(kept), "newer") {
		t.Errorf("the second host keeps %s: %v", kept, err)
	}

	// A host gets what it has missed, without a question.
	newer := read("sv1")
	newer.Confirmed = append(newer.Confirmed, 700)
	e.must(on("sv1").Releases.Write(t.Context(), newer))
	_, _, err = sites.Up(t.Context(), e.Session, e.site(), nil, sites.UpOptions{})
	e.must(err)
	if one, two := read("sv1"), read("sv2"); one.State() != two.State() || len(two.Confirmed) != len(newer.Confirmed) {
		t.Errorf("on record are %+v and %+v", one, two)
	}

	// Two hosts changed by different control hosts disagree, and the error does not prefer one.
	e.must(on("sv1").Releases.Write(t.Context(), newer))
	newer.Active = map[string]int{"web1": 701}
	e.must(on("sv2").Releases.Write(t.Context(), newer))
	_, _, err = sites.Up(t.Context(), e.Session, e.site(), nil, sites.UpOptions{})
	e.wantExit(err, problem.Surprise, "hosts sv1 and sv2 disagree", "--without")
	e.Without = []string{"sv2"}
	_, _, err = sites.Up(t.Context(), e.Session, e.site(), nil, sites.UpOptions{})
	e.must(err)
	e.Without = nil
	e.must(os.Remove(filepath.Join(other.dirs.Site("toykat"), "releases.json")))
	_, _, err = sites.Up(t.Context(), e.Session, e.site(), nil, sites.UpOptions{})
	e.must(err)
	if two := read("sv2"); two.Active["web1"] != 700 {
		t.Errorf("on record is %+v", two)
	}

	// If two copies of a release differ, the one in releases.lock is used.
	e.must(os.WriteFile(filepath.Join(other.dirs.Release("toykat", 700), "site/roles/web/role.toml"),
		[]byte("# another\n"), 0o600))
	_, _, err = sites.Up(t.Context(), e.Session, e.site(), nil, sites.UpOptions{})
	if err != nil || !strings.Contains(e.watch.text(),
		"host sv2 had a copy of release 700 that differs from releases.lock; it was replaced") {
		t.Fatalf("of two copies: %v\ntold: %s", err, e.watch.text())
	}
	kept, err = os.ReadFile(filepath.Join(other.dirs.Release("toykat", 700), "site/roles/web/role.toml"))
	if err != nil || !strings.Contains(string(kept), "newer") {
		t.Errorf("the second host keeps %s: %v", kept, err)
	}
}

// trust accepts the hosts' copy of a release.
func (d *desk) trust(release int) *releases.Copy {
	d.Helper()
	shown := false
	made, err := releases.Trust(d.Context(), d.Session, d.site(),
		releases.TrustOptions{Release: release, Show: func(*releases.Copy) { shown = true }})
	d.must(err)
	if !shown {
		d.Error("what is accepted was not shown")
	}
	return made
}

// farStaged returns a site on two hosts with a staged release.
func farStaged(t *testing.T) (d *desk, other *machine) {
	t.Helper()
	d, other = farDesk(t)
	d.write("site.toml", twoHosts+"[release.700]\n[release.701]\n")
	d.up()
	d.stage(700)
	return d, other
}

// wantSame wants that hosts have the same on record.
func (d *desk) wantSame(release int) {
	d.Helper()
	f, err := d.Hosts(d.Context(), d.site())
	d.must(err)
	one, err := f.All[0].Releases.Read(d.Context())
	d.must(err)
	two, err := f.All[1].Releases.Read(d.Context())
	d.must(err)
	if one.State() != two.State() || one.Switch != nil || one.Active["db"] != release || two.Active["web1"] != release {
		d.Errorf("on record are %+v and %+v", one, two)
	}
}

// TestFarSwitch: a release is staged on all hosts, and goes live on all of them or on none.
func TestFarSwitch(t *testing.T) {
	d, other := farStaged(t)
	d.wantLive(0)
	for name, m := range map[string]*machine{"sv1": d.machine, "sv2": other} {
		if _, err := os.Stat(filepath.Join(m.dirs.Release("toykat", 700), "site/site.toml")); err != nil {
			t.Errorf("host %s keeps no copy of the site directory: %v", name, err)
		}
	}
	made := d.turnTo(700)
	if made.Already || !made.Kept || len(made.To) != 3 {
		t.Errorf("switched was %+v", made)
	}
	d.wantLive(700)
	d.wantSame(700)
	if made = d.turnTo(700); !made.Already {
		t.Errorf("switched again was %+v", made)
	}
	all, err := releases.List(t.Context(), d.Session, d.site())
	d.must(err)
	if len(all) != 3 || len(all[1].Live) != 3 || len(all[0].Quarantine) != 3 || all[1].State() != "live, confirmed" {
		t.Errorf("the releases are %+v", all)
	}
	_, err = releases.Rollback(t.Context(), d.Session, d.site(), nil)
	d.must(err)
	d.wantLive(0)
	d.wantSame(0)

	// If one host fails, no host switches.
	other.fault.Fail("move", "", 1, nil)
	_, err = releases.Switch(t.Context(), d.Session, d.site(), nil, releases.SwitchOptions{Release: 700})
	d.wantExit(err, problem.Reverted, "back at release none")
	d.wantLive(0)
	d.wantSame(0)
	d.turnTo(700)
	d.wantLive(700)

	d.up()
	d.wantLive(700)
	// Down ends what was under way, whatever its state.
	f, err := d.Hosts(t.Context(), d.site())
	d.must(err)
	r, err := f.Records().Read(t.Context())
	d.must(err)
	// A run left different records, because only one host recorded the switch. The next holder of
	// the lock writes the same record to all hosts.
	apart := r
	apart.Former = map[string]int{"web1": 700}
	d.must(f.All[1].Releases.Write(t.Context(), apart))
	apart.Former = nil
	d.must(f.All[0].Releases.Write(t.Context(), apart))
	if _, err := f.Records().Read(t.Context()); problem.ExitCode(err) != int(problem.Surprise) {
		t.Errorf("hosts that were steered apart: %v", err)
	}
	d.must(f.Records().Write(t.Context(), r))
	d.wantSame(700)

	r.Switch = &observe.Switch{To: map[string]int{"web1": 701}, End: map[string]int{"web1": 700}, Who: "somebody"}
	d.must(f.Records().Write(t.Context(), r))
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
	d.up()
	d.wantLive(700)
	d.wantSame(700)
	_, err = releases.Rollback(t.Context(), d.Session, d.site(), nil)
	d.wantExit(err, problem.Mistake, "no former release")
}

// TestFarShow: each host describes its own nodes of a release.
func TestFarShow(t *testing.T) {
	d, other := diskDesk(t), newMachine(t)
	other.disk = true
	d.machine.others = map[string]*machine{"sv2": other}
	d.write("site.toml", twoHosts+"[release.700]\n")
	d.machine.of("toykat").Addresses = []observe.Address{{Prefix: "10.8.1.1/24", Link: "eth0", MTU: 1500}}
	other.of("toykat").Addresses = []observe.Address{{Prefix: "10.8.1.2/24", Link: "eth0", MTU: 1500}}
	d.up()
	d.stage(700)
	for _, number := range []int{0, 700} {
		all, err := releases.Show(t.Context(), d.Session, d.site(), number, []string{"db", "web1"})
		d.must(err)
		if len(all) != 2 || all[0].Node != "db" || all[1].Node != "web1" || strings.Join(all[1].Content, " ") != "c0de" {
			t.Errorf("release %d consists of %+v", number, all)
		}
	}
	_, err := releases.Show(t.Context(), d.Session, d.site(), 799, nil)
	d.wantExit(err, problem.Mistake, "release 799 has no nodes")
}

// TestUnreadableEdition: a host whose copy of a site directory cannot be read gets the copy of
// another host. If there is none, or if there are two different ones, the site can still be taken
// down.
func TestUnreadableEdition(t *testing.T) {
	d, other := farStaged(t)
	d.turnTo(700)
	const made = "site/roles/web/role.toml"
	damage := func(m *machine) {
		t.Helper()
		file := filepath.Join(m.dirs.Release("toykat", 700), made)
		d.must(os.RemoveAll(file))
		d.must(os.Symlink("/etc/passwd", file))
	}
	damage(other)
	d.up()
	if info, err := os.Lstat(filepath.Join(other.dirs.Release("toykat", 700), made)); err != nil ||
		!info.Mode().IsRegular() {
		t.Errorf("what could not be read is %v (%v)", info, err)
	}
	d.wantLive(700)
	for _, m := range []*machine{d.machine, other} {
		d.must(os.WriteFile(filepath.Join(m.dirs.Release("toykat", 700), made), []byte("# another\n"), 0o600))
	}
	_, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	d.wantExit(err, problem.Refused, "the copy of release 700 on sv1, sv2", "does not have the digest",
		"orrery release trust 700")
	if _, err := sites.Down(t.Context(), d.Session, d.site(), []string{"web1"}, false); err != nil {
		t.Errorf("while no copy is what it should be: %v", err)
	}
	damage(other)
	damage(d.machine)
	if _, err := sites.Down(t.Context(), d.Session, d.site(), nil, false); err != nil ||
		!strings.Contains(d.watch.text(), "on host sv1 cannot be read, and no other host that answers has one") {
		t.Errorf("while no copy can be read: %v\ntold: %s", err, d.watch.text())
	}
	for _, m := range []*machine{d.machine, other} {
		if left, err := m.of("toykat").List(t.Context(), "toykat"); err != nil || len(left) > 0 {
			t.Errorf("left are %v (%v)", left, err)
		}
	}
}

// TestFarSwitchCut: a host is lost during a switch. The error reports the mixed releases. When the
// host is back, the next run, from any control host, brings all nodes to one release.
func TestFarSwitchCut(t *testing.T) {
	d, other := farStaged(t)
	// The second host is lost when the links of the first have moved, or are about to.
	lost := false
	var once sync.Mutex // steps run concurrently, and some of them after the run
	d.of("toykat").Command = nil
	other.slow = func() {
		once.Lock()
		defer once.Unlock()
		if lost {
			return
		}
		f, err := d.Hosts(d.Context(), d.site())
		if err != nil {
			return
		}
		if r, err := f.All[0].Releases.Read(t.Context()); err == nil && r.Switch != nil {
			lost = true
			d.machine.others = nil
			d.Links.Close()
		}
	}
	_, err := releases.Switch(t.Context(), d.Session, d.site(), nil, releases.SwitchOptions{Release: 700})
	if !lost || problem.ExitCode(err) != int(problem.HalfWay) {
		t.Fatalf("a host was lost (%v) in a switch that ended with %v", lost, err)
	}
	d.Without = []string{"sv2"}
	_, _, err = sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
	d.wantExit(err, problem.HalfWay, "the state of sv2 is unknown")
	d.Without = nil
	d.machine.others = map[string]*machine{"sv2": other}
	_, err = sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	d.wantExit(err, problem.HalfWay, "under way or was interrupted")
	d.WaitForLocks = true // the helper may still hold the lock
	d.up()
	d.wantLive(0)
	d.wantSame(0)
	d.turnTo(700)
	d.wantLive(700)
	d.wantSame(700)
}

// liar is a host that sends something other than it reports.
type liar struct{ apply.ReleaseHost }

func (liar) SendEdition(ctx context.Context, _ int, rw io.ReadWriter) error {
	dir, err := os.MkdirTemp("", "orrery-liar-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is of a test
	if err := os.Mkdir(filepath.Join(dir, sitearchive.Site), 0o700); err != nil {
		return err
	}
	return sitearchive.Send(ctx, dir, rw)
}

// TestHostileRelease: a host's copy of a site directory cannot make the control host read or run
// anything. It is used only if it has the digest that all hosts report.
func TestHostileRelease(t *testing.T) {
	d := newDesk(t)
	d.write("site.toml", strings.Replace(fromElsewhere, "10.8.1.1", "local", 1))
	d.up()
	d.stage(700)
	d.turnTo(700)
	stolen := filepath.Join(t.TempDir(), "stolen")
	d.must(os.WriteFile(stolen, []byte("theirs"), 0o600))
	file := filepath.Join(d.dirs.Release("toykat", 700), "site/site.toml")
	text, err := os.ReadFile(file)
	d.must(err)
	d.must(os.WriteFile(file, append(text, "\n[secret.stolen]\nfile = \""+stolen+
		"\"\n[hook.run]\non = [\"backup-done\"]\ncommand = [\""+stolen+"\"]\n"...), 0o600))
	e := d.elsewhere(fromElsewhere, map[string]*machine{"sv1": d.machine})
	e.trust(700) // even if it was trusted
	f, err := e.Hosts(t.Context(), e.site())
	e.must(err)
	made, err := e.Connector(e.site()).Releases(f).Load(t.Context(), 700)
	e.must(err)
	if len(made.Secrets) != len(e.site().Secrets) || len(made.Hooks) > 0 {
		t.Errorf("a host declares %+v and %+v", made.Secrets, made.Hooks)
	}
	f.All[0].Releases = liar{f.All[0].Releases}
	if _, err := e.Connector(e.site()).Releases(f).Load(t.Context(), 700); problem.ExitCode(err) != int(problem.Surprise) {
		t.Errorf("of what it does not keep: %v", err)
	}
}

// TestNodeOnTwo: if two hosts claim to have a node, it is on the host that the site file
// wants; else nobody guesses, and nothing is sent to either.
func TestNodeOnTwo(t *testing.T) {
	hosts := map[string]*machine{}
	// otherwise they would belong to two sites
	fromElsewhere := strings.Replace(fromElsewhere, "[site]", "[site]\nid = \"a1\"", 1)
	for _, name := range []string{"sv1", "sv2"} {
		d := newDesk(t)
		d.write("site.toml", strings.Replace(fromElsewhere, "10.8.1.1", "local", 1))
		d.up()
		hosts[name] = d.machine
	}
	e := newDesk(t).elsewhere(fromElsewhere+secondHost, hosts)
	_, err := sites.Preview(t.Context(), e.Session, nil, sites.PreviewOptions{})
	e.wantExit(err, problem.Surprise, "on host sv1 and on host sv2", "host = in [node.")
	_, err = way.Runner(t.Context(), e.Session, e.site(), "web1")
	e.wantExit(err, problem.Surprise, "on host sv1 and on host sv2")
	e.Without = []string{"sv2"}
	_, err = way.Runner(t.Context(), e.Session, e.site(), "web1")
	e.must(err)
	e.Without = nil
	e.write("site.toml", strings.ReplaceAll(fromElsewhere, "roles  =", "host = \"sv2\"\nroles  =")+secondHost)
	_, err = way.Runner(t.Context(), e.Session, e.site(), "web1")
	e.must(err)
	roll, err := way.NewDirectory(t.Context(), e.Session, e.site())
	e.must(err)
	if _, err := roll.Live(t.Context(), "web1"); err != nil {
		t.Error(err)
	}
}
