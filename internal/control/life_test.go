package control_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/control"
	"orrery/internal/control/nodes"
	"orrery/internal/control/overdue"
	"orrery/internal/control/sites"
	"orrery/internal/control/twins"
	"orrery/internal/host"
	"orrery/internal/journal"
	"orrery/internal/plan"
	"orrery/internal/plan/stand"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/volume"
)

const allUp = "db none running healthy, web1 none running healthy, web2 none running healthy"

func (d *desk) up() {
	d.Helper()
	_, _, err := sites.Up(d.Context(), d.Session, d.site(), nil, sites.UpOptions{})
	d.must(err)
}

// wantExit wants an error that gives this exit status, and says something.
func (d *desk) wantExit(err error, kind problem.Kind, says ...string) {
	d.Helper()
	if problem.ExitCode(err) != int(kind) {
		d.Fatalf("%v has the exit status %d, not %d\ntold: %s", err, problem.ExitCode(err), kind, d.watch.text())
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) {
			d.Errorf("%q is not in %q", want, err)
		}
	}
}

// TestUpDown: a site comes up healthy, a second up finds nothing to do, and down leaves only
// volumes.
func TestUpDown(t *testing.T) {
	d := newDesk(t)
	s := d.site()
	d.up()
	d.wantNodes(allUp)
	if r, _, err := sites.Up(t.Context(), d.Session, s, nil, sites.UpOptions{}); err != nil || r != nil {
		t.Errorf("the second up: %+v, %v", r, err)
	}
	archive := filepath.Join(d.dirs.Volumes("toykat"), "archive", "db")
	if _, err := os.Stat(archive); err != nil {
		t.Error(err)
	}
	if r, err := sites.Down(t.Context(), d.Session, s, []string{"web*"}, false); err != nil || len(r.Done) != 2 {
		t.Errorf("down of two nodes: %+v, %v", r, err)
	}
	d.wantNodes("db none running healthy, web1 none absent -, web2 none absent -")
	if _, err := sites.Down(t.Context(), d.Session, s, nil, false); err != nil {
		t.Fatal(err)
	}
	if d.networks() != "" || len(d.Register().SitesUp()) > 0 {
		t.Errorf("left are %v, %v", d.networks(), d.Register().SitesUp())
	}
	if _, err := os.Stat(archive); err != nil {
		t.Error(err)
	}
	if r, err := sites.Down(t.Context(), d.Session, s, nil, false); err != nil || r != nil {
		t.Errorf("the second down: %+v, %v", r, err)
	}
	d.up()
	_, err := sites.DownNamed(t.Context(), d.Session, "toykat", true)
	d.must(err)
	if left, err := volume.List(d.dirs, "toykat"); err != nil || len(left) > 0 {
		t.Errorf("left are the volumes %v, %v", left, err)
	}
	_, err = sites.DownNamed(t.Context(), d.Session, "toycat", false)
	d.wantExit(err, problem.Usage, "did you mean toykat?")
}

// TestForget: what the host keeps of a site is deleted once the site is down and has no data left, and
// only with the caller's consent.
func TestForget(t *testing.T) {
	d := diskDesk(t)
	d.up()
	forget := func(name string) error { return sites.Forget(t.Context(), d.Session, name) }
	d.wantExit(forget("toykat"), problem.Refused, "site toykat is up", "orrery down --name toykat")
	d.wantExit(forget("toycat"), problem.Usage, "did you mean toykat?")
	_, err := sites.Down(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
	d.wantExit(forget("toykat"), problem.Surprise, "volumes of the site are still on this host")
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, true)
	d.must(err)
	agrees := d.Confirmer
	asker := &refuses{}
	d.Confirmer = asker
	d.wantExit(forget("toykat"), problem.Refused)
	if len(asker.asked) != 1 || asker.asked[0].About != control.Forget {
		t.Errorf("asked was %+v", asker.asked)
	}
	if _, err := os.Stat(d.dirs.Keys("toykat")); err != nil {
		t.Error(err)
	}
	d.Confirmer = agrees
	d.must(os.MkdirAll(d.dirs.Site("toykat.dev1"), 0o755))
	d.wantExit(forget("toykat"), problem.Refused, "1 twin: dev1")
	d.must(os.Remove(d.dirs.Site("toykat.dev1")))
	d.must(forget("toykat"))
	if _, err := os.Stat(d.dirs.Site("toykat")); !os.IsNotExist(err) {
		t.Errorf("the state of the site: %v", err)
	}
	d.up() // and it comes up again
}

// refuses is the Confirmer of a caller who agrees to nothing.
type refuses struct{ asked []control.Question }

func (r *refuses) Ask(q control.Question) (bool, error) {
	r.asked = append(r.asked, q)
	return true, problem.New(problem.Refused, "not confirmed; nothing was done")
}

// TestConsent: production is disturbed, and data is removed, only with the caller's consent.
func TestConsent(t *testing.T) {
	d := newDesk(t)
	d.write("site.toml", strings.Replace(toykat, "[network.lan]", "production = true\n[network.lan]", 1))
	d.up()
	asker := &refuses{}
	d.Confirmer = asker
	s := d.site()
	_, err := sites.Stop(t.Context(), d.Session, s, nil)
	d.wantExit(err, problem.Refused)
	_, err = sites.Down(t.Context(), d.Session, s, nil, true)
	d.wantExit(err, problem.Refused)
	d.wantNodes(allUp)
	if len(asker.asked) != 2 || asker.asked[0].About != control.Production || asker.asked[1].About != control.Volumes ||
		asker.asked[0].Site != "toykat" {
		t.Errorf("asked was %+v", asker.asked)
	}
	r, err := sites.Start(t.Context(), d.Session, s, nil) // nothing is disturbed
	if err != nil || r != nil {
		t.Errorf("start: %+v, %v", r, err)
	}
}

// TestConsentToLoss: without the caller's consent, up destroys and recreates no nodes of any site. It
// asks with the summary of the plan, and does not ask if nothing is lost.
func TestConsentToLoss(t *testing.T) {
	for _, production := range []bool{false, true} {
		d := newDesk(t)
		asker := &refuses{}
		d.Confirmer = asker
		about, text := control.Loss, toykat
		if production {
			about, text = control.Production, strings.Replace(toykat, "[network.lan]", "production = true\n[network.lan]", 1)
		}
		d.write("site.toml", text)
		d.up() // nodes are only created
		d.write("site.toml", strings.Replace(text, "web{1..2}", "web{1..1}", 1))
		if asker.asked != nil {
			t.Errorf("asked was %+v", asker.asked)
		}
		_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
		d.wantExit(err, problem.Refused)
		d.write("site.toml", text)
		d.wantNodes(allUp)
		if len(asker.asked) != 1 || asker.asked[0].About != about || asker.asked[0].Plain == production ||
			!strings.Contains(asker.asked[0].Why, "destroy    node web2: no longer declared; "+stand.Loss) {
			t.Errorf("asked was %+v", asker.asked)
		}
	}
}

// TestFailures: a failing step does not affect the rest of the site, and the same operation
// continues from there. With Undo, all steps are undone.
func TestFailures(t *testing.T) {
	d := newDesk(t)
	s := d.site()
	d.fault.Fail("Start", "web1", 1, nil)
	_, _, err := sites.Up(t.Context(), d.Session, s, nil, sites.UpOptions{})
	d.wantExit(err, problem.Left, "web1")
	d.wantNodes("db none running healthy, web1 none stopped -, web2 none running healthy")
	if !strings.Contains(d.watch.text(), "trouble: node web1: start: injected failure") {
		t.Errorf("told was %s", d.watch.text())
	}
	d.up()
	d.wantNodes(allUp)
	_, err = sites.Down(t.Context(), d.Session, s, nil, true)
	d.must(err)
	d.fault.Fail("Start", "web1", 1, nil)
	_, _, err = sites.Up(t.Context(), d.Session, s, nil, sites.UpOptions{Undo: true})
	d.wantExit(err, problem.Undone)
	if _, err := os.Stat(filepath.Join(d.dirs.Site("toykat"), "undo")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was kept for undoing is there when it is undone: %v", err)
	}
	d.wantNodes("db none absent -, web1 none absent -, web2 none absent -")
	if d.networks() != "" {
		t.Errorf("left are %v", d.networks())
	}
}

// TestStopStart: stopped nodes keep their data, and start unchanged.
func TestStopStart(t *testing.T) {
	d := newDesk(t)
	d.up()
	s := d.site()
	_, err := sites.Stop(t.Context(), d.Session, s, []string{"web1"})
	d.must(err)
	d.wantNodes("db none running healthy, web1 none stopped -, web2 none running healthy")
	_, err = sites.Start(t.Context(), d.Session, s, nil)
	d.must(err)
	d.wantNodes(allUp)
	_, err = sites.Stop(t.Context(), d.Session, s, []string{"nobody"})
	d.wantExit(err, problem.Usage)
}

// TestRestart: running nodes are stopped, in order or at once, and stopped ones stay stopped until
// then. Afterwards all are healthy. The journal has the steps.
func TestRestart(t *testing.T) {
	d := newDesk(t)
	d.up()
	s := d.site()
	_, err := sites.Stop(t.Context(), d.Session, s, []string{"web2"})
	d.must(err)
	for turn, ends := range []plan.Kind{plan.StopNode, plan.KillNode} { // web2 runs only the second time
		d.watch.steps, d.watch.restarts = nil, 0
		d.Ending.Hard = ends == plan.KillNode
		_, err = nodes.Restart(t.Context(), d.Session, s, []string{"web1", "web2"})
		d.must(err)
		d.wantNodes(allUp)
		did := strings.Join(d.watch.steps, "\n")
		for _, want := range []string{"node web1: " + string(ends) + ": requested", "node web1: start: requested",
			"node web1: check: check health"} {
			if !strings.Contains(did, want) {
				t.Errorf("%q is not in\n%s", want, did)
			}
		}
		if stopped := strings.Contains(did, "web2: "+string(ends)); stopped == (turn == 0) ||
			strings.Contains(did, "node db") {
			t.Errorf("%s:\n%s", ends, did)
		}
		if d.watch.restarts != turn+1 {
			t.Errorf("%s: %d stops are known to be restarts", ends, d.watch.restarts)
		}
	}
	f, err := d.HostsWithoutReleases(t.Context(), s)
	d.must(err)
	entries, _, err := f.All[0].Runs.ReadJournal(t.Context(), 0)
	d.must(err)
	if !slices.ContainsFunc(entries, func(e journal.Entry) bool {
		return e.Step == "node web1: kill: requested" &&
			e.Result == "done"
	}) {
		t.Errorf("the journal does not have it: %+v", entries)
	}
	_, err = nodes.Restart(t.Context(), d.Session, s, []string{"nobody"})
	d.wantExit(err, problem.Usage)
}

// TestLocked: two operations on a site exclude each other, and a patient one waits.
func TestLocked(t *testing.T) {
	d := newDesk(t)
	d.up()
	s := d.site()
	f, err := d.Hosts(t.Context(), s)
	d.must(err)
	letGo, err := d.LockSite(t.Context(), s, f)
	d.must(err)
	_, err = sites.Stop(t.Context(), d.Session, s, nil)
	d.wantExit(err, problem.Locked)
	done := make(chan error)
	go func() {
		_, err := sites.Stop(t.Context(), d.WaitingForLocks(), s, nil)
		done <- err
	}()
	letGo()
	d.must(<-done)
	d.wantNodes("db none stopped -, web1 none stopped -, web2 none stopped -")
}

// TestEqualFailures: a step that fails on several nodes for the same reason is reported once.
func TestEqualFailures(t *testing.T) {
	d := newDesk(t)
	d.fault.Fail("Start", "web1", 1, nil)
	d.fault.Fail("Start", "web2", 1, nil)
	_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
	d.wantExit(err, problem.Left, "node web1", "node web2")
	if told := d.watch.text(); strings.Count(told, "on web1, web2: start: ") != 1 ||
		strings.Contains(told, "node web1: start") {
		t.Errorf("told was %s", told)
	}
}

// TestTwin: a twin comes up beside its original and belongs to its owner. If no process waited for
// its end, it is destroyed when the site is next changed.
func TestTwin(t *testing.T) {
	d := newDesk(t)
	d.up()
	original, dir, err := twins.LoadOriginal(d.Session, d.dir)
	d.must(err)
	of := twinOf(original.Name, dir, "dev")
	s, r, err := twins.Create(t.Context(), d.Session, of)
	d.must(err)
	if s.Key() != "toykat.dev" || r == nil {
		t.Errorf("made was %s, %+v", s.Key(), r)
	}
	if all, running := sites.Count(t.Context(), d.Session, s); all != 3 || running != 3 {
		t.Errorf("%d nodes, %d run", all, running)
	}
	d.wantNodes(allUp) // of the original
	_, _, err = twins.Create(t.Context(), d.Session, of)
	d.wantExit(err, problem.Mistake, "already has a twin dev")
	rows, err := sites.All(t.Context(), d.Session)
	d.must(err)
	if len(rows) != 2 || !rows[1].Up || rows[1].Running != 3 {
		t.Errorf("the sites are %+v", rows)
	}

	somebody := *d.Session
	somebody.Twin = "dev"
	record, err := d.Register().ReadTwin("toykat.dev")
	d.must(err)
	record.Options.Owner = "bob"
	d.must(d.Register().WriteTwin(record))
	theirs, err := somebody.Load()
	d.must(err)
	_, err = sites.Stop(t.Context(), &somebody, theirs, nil)
	d.wantExit(err, problem.Refused, "bob")

	record.Expires = record.Created.Add(-hour)
	d.must(d.Register().WriteTwin(record))
	_, err = sites.Start(t.Context(), d.Session, d.site(), nil) // a change of any site carries out overdue work
	d.must(err)
	if len(d.Register().Twins()) > 0 || !strings.Contains(d.watch.text(), "Twin dev of toykat is gone") {
		t.Errorf("there are still %v; told was %s", d.Register().Twins(), d.watch.text())
	}
	d.wantExit(twins.Destroy(t.Context(), d.Session, "dev"), problem.Mistake, "has no twin")
	d.wantNodes(allUp)
}

// TestTwinVolumes: the volumes of a twin are empty at first, or filled by a program, or copies of
// the original's.
func TestTwinVolumes(t *testing.T) {
	d := newDesk(t)
	d.up()
	book := filepath.Join(d.dirs.Volumes("toykat"), "archive", "db", "book")
	d.must(os.WriteFile(book, []byte("paid"), 0o644))
	fill := filepath.Join(d.dir, "fill")
	d.must(os.WriteFile(fill, []byte("#!/bin/sh\necho \"$1 $2\" > \"$3/book\"\n"), 0o755))
	for how, want := range map[string]string{site.CopyEmpty: "", site.CopySnapshot: "paid", fill: "archive db\n"} {
		of := twinOf("toykat", d.dir, "dev")
		of.Volumes = how
		_, _, err := twins.Create(t.Context(), d.Session, of)
		d.must(err)
		text, _ := os.ReadFile(filepath.Join(d.dirs.Volumes("toykat.dev"), "archive", "db", "book"))
		if string(text) != want {
			t.Errorf("%s: %q", how, text)
		}
		d.must(twins.Destroy(t.Context(), d.Session, "dev"))
	}
	of := twinOf("toykat", d.dir, "dev")
	of.Volumes = "/no/such/program"
	_, _, err := twins.Create(t.Context(), d.Session, of)
	d.wantExit(err, problem.Usage, "no such executable file")
}

// TestResume: after a reboot, all sites that were up come up again, and those that were down stay
// down.
func TestResume(t *testing.T) {
	d := newDesk(t)
	d.up()
	_, err := sites.Stop(t.Context(), d.Session, d.site(), nil) // as after a power cut
	d.must(err)
	for _, m := range d.Register().SitesUp() {
		s, r, err := sites.ResumeSite(t.Context(), d.Session, m)
		d.must(err)
		if s == nil || r == nil {
			t.Errorf("%s: %v, %v", m.Key(), s, r)
		}
	}
	d.wantNodes(allUp)
	d.must(overdue.ResumeExpiries(t.Context(), d.Session))
	d.must(os.Remove(filepath.Join(d.dir, "site.toml")))
	_, _, err = sites.ResumeSite(t.Context(), d.Session, d.Register().SitesUp()[0])
	d.wantExit(err, problem.Failed, "was not brought up")
	_, err = sites.DownNamed(t.Context(), d.Session, "toykat", false)
	d.must(err)
	if len(d.Register().SitesUp()) > 0 {
		t.Errorf("up are %v", d.Register().SitesUp())
	}
}

// thinks is the Confirmer of a caller who agrees in the end, after something else has happened.
type thinks struct{ meanwhile func() error }

func (w thinks) Ask(q control.Question) (bool, error) {
	q.LetGo()
	return true, w.meanwhile()
}

// TestThinking: while a question waits for an answer, other processes can change the site. If they
// do, the planned change is not made.
func TestThinking(t *testing.T) {
	d := newDesk(t)
	d.write("site.toml", strings.Replace(toykat, "[network.lan]", "production = true\n[network.lan]", 1))
	d.up()
	s := d.site()
	other := *d.Session
	other.Confirmer = control.AssumeYes{}
	d.Confirmer = thinks{func() error {
		_, err := sites.Stop(t.Context(), &other, s, []string{"web1"})
		return err
	}}
	_, err := sites.Stop(t.Context(), d.Session, s, []string{"web2"})
	d.wantExit(err, problem.Surprise, "has changed since the plan was made")
	d.Confirmer = thinks{func() error { return nil }}
	if _, err := sites.Stop(t.Context(), d.Session, s, []string{"web2"}); err != nil {
		t.Errorf("when nothing has changed: %v", err)
	}
	if host.IsLocked(d.dirs.Lock(s.Key())) {
		t.Error("the lock is still taken")
	}
}
