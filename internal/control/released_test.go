package control_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"orrery/internal/control"
	"orrery/internal/control/layers"
	"orrery/internal/control/nodes"
	"orrery/internal/control/overdue"
	"orrery/internal/control/register"
	"orrery/internal/control/releases"
	"orrery/internal/control/sites"
	"orrery/internal/control/status"
	"orrery/internal/control/way"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/member"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

// TestReleaseLs: each release is listed with its role in the site and its contents, and old
// releases are removed.
func TestReleaseLs(t *testing.T) {
	d := diskDesk(t)
	d.write("site.toml", toykat+"[release.702]\nnotes = \"the last\"\n")
	d.up()
	for _, n := range []int{700, 701} {
		d.stage(n)
		d.turnTo(n)
	}
	d.stage(702)
	s := d.site()
	all, err := releases.List(t.Context(), d.Session, s)
	d.must(err)
	var got []string
	for _, r := range all {
		what := ""
		for word, set := range map[string]bool{"declared": r.Declared, "former": r.Former, "trial": r.Trial} {
			if set {
				what += " " + word
			}
		}
		got = append(got, strings.TrimSpace(strings.Join([]string{register.ReleaseNames(map[string]int{"": r.Number}),
			strings.Join(r.Live, "+"), strings.Join(r.Quarantine, "+"), r.Notes}, "|")))
		if r.Former != (r.Number == 700) || r.Declared != (r.Number >= 700) {
			t.Errorf("release %d is%s", r.Number, what)
		}
	}
	want := "none||db+web1+web2| 700||db+web1+web2| 701|db+web1+web2|| 702||db+web1+web2|the last"
	if strings.Join(got, " ") != want {
		t.Errorf("the releases are %s\nnot %s", strings.Join(got, " "), want)
	}
	shown, err := releases.Show(t.Context(), d.Session, s, 701, []string{"db"})
	d.must(err)
	if len(shown) != 1 || shown[0].Node != "db" || len(shown[0].Content) == 0 ||
		strings.Join(shown[0].Roles, " ") != "db" {
		t.Errorf("%+v", shown)
	}
	_, err = releases.Show(t.Context(), d.Session, s, 799, nil)
	d.wantExit(err, problem.Mistake, "release 799 has no nodes", "orrery stage --release 799")

	_, err = releases.Prune(t.Context(), d.Session, s, -1)
	d.wantExit(err, problem.Usage)
	gone, err := releases.Prune(t.Context(), d.Session, s, 0)
	d.must(err)
	if gone == nil || gone.Nodes == 0 {
		t.Errorf("%+v", gone)
	}
	if again, err := releases.Prune(t.Context(), d.Session, s, 0); err != nil || again != nil {
		t.Errorf("%+v, %v", again, err)
	}
	d.wantLive(701)
	if _, err := releases.Rollback(t.Context(), d.Session, s, nil); err != nil {
		t.Errorf("what rollback returns to is gone: %v", err)
	}

	for text, want := range map[string]int{"next": 702, "701": 701, "0": 0} {
		if n, err := register.ReleaseNumber(s, text); n != want || err != nil {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	for text, want := range map[string]string{"": "no release given", "x": "not a release number",
		"-1": "not a release number"} {
		if _, err := register.ReleaseNumber(s, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestLayers: layers are built without nodes. Unused layers are removed, and a failing build is
// reported.
func TestLayers(t *testing.T) {
	d := diskDesk(t)
	d.write("roles/db/role.toml", "apt = [\"cron\"]\n")
	d.fault.Fail("build", "debian", 1, nil)
	_, err := layers.Build(t.Context(), d.Session, nil)
	d.wantExit(err, problem.Left, "layer debian")
	built, err := layers.Build(t.Context(), d.Session, []string{"db"})
	d.must(err)
	if len(built) != 2 || !built[0].IsBase() && !built[1].IsBase() {
		t.Errorf("built were %+v", built)
	}
	rows, err := layers.List(t.Context(), d.Session)
	d.must(err)
	if len(rows) != 2 || rows[0].Used || rows[1].Used {
		t.Errorf("%+v", rows)
	}
	d.wantNodes("db none absent -, web1 none absent -, web2 none absent -")
	_, _, err = sites.Up(t.Context(), d.Session, d.site(), []string{"web1"}, sites.UpOptions{})
	d.must(err)
	gone, err := layers.Remove(t.Context(), d.Session)
	d.must(err)
	if len(gone) != 1 || !strings.Contains(gone[0].Title, "db") {
		t.Errorf("gone are %+v", gone)
	}
	if rows, err = layers.List(t.Context(), d.Session); err != nil || len(rows) != 1 || !rows[0].Used {
		t.Errorf("%+v, %v", rows, err)
	}
	var log strings.Builder
	if err := nodes.PrintBuildLog(d.Session, rows[0].Digest, &log); err != nil ||
		!strings.Contains(log.String(), "no output") {
		t.Errorf("of what printed nothing, there is %q (%v)", log.String(), err)
	}
	_, err = layers.Pull(t.Context(), d.Session, layers.PullOptions{Dir: t.TempDir()})
	if err == nil { // layers in memory have no suite
		t.Error("a mirror was made of nothing")
	}
	d.write("site.toml", "[site]\nname = \"toykat\"\n")
	if pulled, err := layers.Pull(t.Context(), d.Session, layers.PullOptions{}); err != nil || !pulled.Needless {
		t.Errorf("%+v, %v", pulled, err)
	}
}

// TestProbe: a probe reports which nodes have changed since they were checked, and resource usage
// is measured.
func TestProbe(t *testing.T) {
	d := newDesk(t)
	d.up()
	look := func() status.Node {
		t.Helper()
		status, err := status.Read(t.Context(), d.Session, d.site(), []string{"web1"})
		d.must(err)
		d.must(status.Probe(t.Context()))
		return status.Nodes[0]
	}
	if n := look(); !n.Probed || len(n.Drift) > 0 || n.Health != status.Healthy {
		t.Errorf("%+v", n)
	}
	d.fault.Fail("Run", "web1", 99, nil)
	if n := look(); n.Health != status.Unhealthy || len(n.Drift) == 0 {
		t.Errorf("%+v", n)
	}
	d.fault.Revive()
	r, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{Probe: true})
	if err != nil || r != nil {
		t.Errorf("an up that looks into nodes which are well: %+v, %v", r, err)
	}

	status, err := status.Read(t.Context(), d.Session, d.site(), nil)
	d.must(err)
	before, err := status.Measure(t.Context(), map[int]host.Sample{})
	d.must(err)
	if len(before) != 3 {
		t.Errorf("measured were %v", before)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := status.Measure(ended, nil); err == nil {
		t.Error("it waits although nobody does")
	}
}

// TestDrift: drift in a node is reported with the node, and an up with Probe repairs it.
func TestDrift(t *testing.T) {
	d := diskDesk(t)
	d.write("roles/web/motd.tmpl", "hello")
	d.write("roles/web/role.toml", "[[file]]\npath = \"/etc/motd\"\ntemplate = \"motd.tmpl\"\n")
	d.up()
	for _, file := range []string{"/etc/passwd", "/etc/group"} {
		d.say("web1", file, "root:x:0:0:::\n")
	}
	look := func() status.Node {
		t.Helper()
		status, err := status.Read(t.Context(), d.Session, d.site(), []string{"web1"})
		d.must(err)
		d.must(status.Probe(t.Context()))
		status.UnhealthyFirst()
		return status.Nodes[0]
	}
	if n := look(); len(n.Drift) > 0 {
		t.Errorf("%+v", n)
	}
	d.say("web1", "/etc/motd", "goodbye")
	if n := look(); n.Health != status.Drifted || len(n.Drift) != 1 || n.Drift[0].Kind != observe.DriftFile ||
		n.Drift[0].Subject != "/etc/motd" {
		t.Errorf("%+v", n)
	}
	if r, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{}); err != nil || r != nil {
		t.Errorf("an up that does not look: %+v, %v", r, err)
	}
	_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{Probe: true})
	d.must(err)
	d.wantSaid("web1", "/etc/motd", "hello")
	if n := look(); len(n.Drift) > 0 {
		t.Errorf("%+v", n)
	}
}

// TestInterrupted: an operation that the caller interrupts reports what is left, and can be
// resumed.
func TestInterrupted(t *testing.T) {
	d := newDesk(t)
	s := d.site()
	ctx, cancel := context.WithCancel(t.Context())
	d.of("toykat").Command = func(_ context.Context, _ engine.Ref, c host.Command) error {
		if c.Args[0] == "ask" {
			cancel()
		}
		return nil
	}
	_, _, err := sites.Up(ctx, d.Session, s, nil, sites.UpOptions{Parallel: 1})
	d.wantExit(err, problem.Interrupted, "steps are done; not done", "run the same command to resume")
	d.up()
	d.wantNodes(allUp)
	d.fault.Fail("Stop", "web1", 3, nil)
	d.fault.Fail("Start", "web2", 1, nil)
	_, err = sites.Down(t.Context(), d.Session, s, []string{"web*"}, false)
	d.must(ignoreLeft(err))
	d.fault.Revive()
	d.up()
	d.wantNodes(allUp)
}

func ignoreLeft(err error) error {
	if problem.ExitCode(err) == int(problem.Left) {
		return nil
	}
	return err
}

// TestUndoFails: an error reports what could not be undone.
func TestUndoFails(t *testing.T) {
	d := newDesk(t)
	d.fault.Fail("Start", "web1", 1, nil)
	d.fault.Fail("Destroy", "web2", 1, nil)
	_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{Undo: true})
	d.wantExit(err, problem.Left, "these steps could not be undone", "web2", "orrery down removes it")
	if !strings.Contains(d.watch.text(), "undo: ") {
		t.Errorf("told was %s", d.watch.text())
	}
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, true)
	d.must(err)
	d.wantNodes("db none absent -, web1 none absent -, web2 none absent -")
}

// TestHalfWay: if a failing switch cannot be undone completely, the error says at which release
// each node is. Later verbs report it, and the next up repairs it.
func TestHalfWay(t *testing.T) {
	d := newDesk(t)
	d.up()
	d.stage(700)
	d.fault.Fail("Change", "web1", 99, nil) // both the switch and its undo fail
	_, err := releases.Switch(t.Context(), d.Session, d.site(), nil, releases.SwitchOptions{Release: 700})
	d.fault.Revive()
	d.wantExit(err, problem.HalfWay, "could not be fully undone", "db: ")
	d.wantExit(overdue.ReportPending(d.Context(), d.Session, d.site()), problem.HalfWay, "is under way or was interrupted",
		"orrery up brings it to release")
	_, err = releases.Confirm(t.Context(), d.Session, d.site(), "by hand")
	d.wantExit(err, problem.HalfWay)
	d.up()
	d.wantLive(0)
	d.must(overdue.ReportPending(d.Context(), d.Session, d.site()))
}

// TestAwaited: waiting for the end of a trial can be interrupted, and the trial continues.
func TestAwaited(t *testing.T) {
	d := newDesk(t)
	d.up()
	d.stage(700)
	_, err := releases.Switch(t.Context(), d.Session, d.site(), nil, releases.SwitchOptions{Release: 700, Within: hour})
	d.must(err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = releases.AwaitTrial(ctx, d.Session, d.site())
	d.wantExit(err, problem.Interrupted, "the trial continues")
	done := make(chan error)
	go func() {
		end, err := releases.AwaitTrial(t.Context(), d.Session, d.site())
		if err == nil && end.Result != observe.Confirmed {
			err = errors.New(end.Result)
		}
		done <- err
	}()
	_, err = releases.Confirm(t.Context(), d.Session, d.site(), "by hand")
	d.must(err)
	d.must(<-done)
}

// TestRoot: without a machine in the session, it is this machine, which only root may change.
func TestRoot(t *testing.T) {
	c := &control.Session{Dirs: host.Dirs{State: t.TempDir(), Run: t.TempDir()}}
	if err := c.Allowed(); (err != nil) != (problem.ExitCode(err) == int(problem.Unable)) {
		t.Error(err)
	}
	if control.UserName() == "" {
		t.Error("nobody is here")
	}
	t.Setenv("SUDO_USER", "ada")
	if control.UserName() != "ada" {
		t.Errorf("here is %s", control.UserName())
	}
}

// TestBarred: a member cannot enter a node in which the member would be root of the host.
func TestBarred(t *testing.T) {
	d := newDesk(t)
	d.write("site.toml", strings.Replace(toykat, "roles  = [\"db\"]", "roles  = [\"db\"]\nprivileged = true", 1))
	d.up()
	d.Member = &member.Person{Name: "ada"}
	in, err := way.Runner(t.Context(), d.Session, d.site(), "db")
	d.must(err)
	d.wantExit(in.Run(t.Context(), host.Command{Args: []string{"id"}}), problem.Refused, "node db is privileged")
	in, err = way.Runner(t.Context(), d.Session, d.site(), "web1")
	d.must(err)
	d.must(in.Run(t.Context(), host.Command{Args: []string{"true"}}))
}

// switching returns a desk with a killed switch. Steps run concurrently, so it searches for an
// operation at which a kill leaves the switch unfinished.
func switching(t *testing.T) *desk {
	t.Helper()
	for operation := 4; operation < 40; operation++ {
		d := newDesk(t)
		d.up()
		d.stage(700)
		d.fault.KillAt(operation)
		ctx, cancel := d.fault.KillContext(t.Context())
		_, err := releases.Switch(ctx, d.Session, d.site(), nil, releases.SwitchOptions{Release: 700})
		cancel()
		d.fault.Revive()
		if err == nil {
			break
		}
		if overdue.ReportPending(d.Context(), d.Session, d.site()) != nil {
			return d
		}
	}
	t.Fatal("a switch is never under way")
	return nil
}

// TestDownOfReleases: a rollback from one release to another is killed at every operation, and then
// the site is taken down. The next up brings all nodes to one of the two releases.
func TestDownOfReleases(t *testing.T) {
	t.Parallel()
	for operation := 1; ; operation++ {
		d := newDesk(t)
		d.up()
		d.stage(700)
		d.turnTo(700)
		d.stage(701)
		d.turnTo(701)
		d.fault.KillAt(operation)
		ctx, cancel := d.fault.KillContext(t.Context())
		_, err := releases.Rollback(ctx, d.Session, d.site(), nil)
		cancel()
		d.fault.Revive()
		_, down := sites.Down(t.Context(), d.Session, d.site(), nil, false)
		d.must(down)
		if _, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{}); err != nil {
			t.Fatalf("killed at %d, it does not come up again: %v", operation, err)
		}
		if strings.HasPrefix(d.nodes(), "db 701") {
			d.wantLive(701)
		} else {
			d.wantLive(700)
		}
		if err == nil {
			return
		}
	}
}

// TestDownWhileSwitching: a site that is taken down with an interrupted switch comes up completely
// at one release.
func TestDownWhileSwitching(t *testing.T) {
	d := switching(t)
	d.wantExit(overdue.ReportPending(d.Context(), d.Session, d.site()), problem.HalfWay, "is under way or was interrupted",
		"orrery up brings it to release")
	_, err := releases.Confirm(t.Context(), d.Session, d.site(), "by hand")
	d.wantExit(err, problem.HalfWay, "was interrupted", "orrery up brings the set to one release")
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
	d.must(overdue.ReportPending(d.Context(), d.Session, d.site()))
	d.up()
	d.wantLive(0)
	_, err = releases.Rollback(t.Context(), d.Session, d.site(), []string{"nobody"})
	d.wantExit(err, problem.Usage, "nobody")
	_, err = releases.Rollback(t.Context(), d.Session, d.site(), []string{"db"})
	d.wantExit(err, problem.Mistake)
}

// TestProvide: all missing layers of a site are built on this machine, base layers first, whatever
// hosts the site has. The hosts are not contacted.
func TestProvide(t *testing.T) {
	d := diskDesk(t)
	d.write("site.toml", twoHosts)
	d.write("roles/web/role.toml", "apt = [\"vim\"]\n")
	build := func() string {
		before := len(d.watch.steps)
		d.must(layers.BuildLocal(t.Context(), d.Session, d.site()))
		return strings.Join(d.watch.steps[before:], "; ")
	}
	if did := build(); !strings.HasPrefix(did, "layer debian: build: not in the store: ") ||
		!strings.Contains(did, "; layer debian + web: build: not in the store: ") || strings.Count(did, ";") != 1 {
		t.Errorf("done was %s", did)
	}
	if did := build(); did != "" {
		t.Errorf("done again was %s", did)
	}
	d.write("roles/web/role.toml", "apt = [\"vim\", \"jq\"]\n")
	if did := build(); !strings.HasPrefix(did, "layer debian + web: build: ") || strings.Contains(did, ";") {
		t.Errorf("done of another role was %s", did)
	}
}
