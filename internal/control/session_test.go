package control_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/releases"
	"orrery/internal/control/sites"
	"orrery/internal/control/status"
	"orrery/internal/control/twins"
	"orrery/internal/control/way"
	"orrery/internal/engine"
	"orrery/internal/member"
	"orrery/internal/observe"
	"orrery/internal/plan/orphan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

// changes is the Confirmer of a caller who agrees, after something has happened.
type changes struct{ meanwhile func() }

func (c changes) Ask(control.Question) (bool, error) {
	c.meanwhile()
	return true, nil
}

// TestChangedWhileAsked: a confirmed plan is carried out only if the host has not changed since the
// plan was made.
func TestChangedWhileAsked(t *testing.T) {
	d := newDesk(t)
	d.write("site.toml", strings.Replace(toykat, "[network.lan]", "production = true\n[network.lan]", 1))
	d.up()
	s := d.site()
	d.Confirmer = changes{func() {
		if err := d.of("toykat").Stop(t.Context(), engine.Ref{Site: "toykat", ID: 21, Name: "web1"}); err != nil {
			t.Error(err)
		}
	}}
	_, err := sites.Stop(t.Context(), d.Session, s, nil)
	d.wantExit(err, problem.Surprise, "has changed since the plan was made")
	d.wantNodes("db none running healthy, web1 none stopped -, web2 none running healthy")
	d.Confirmer = changes{func() {}}
	_, err = sites.Stop(t.Context(), d.Session, s, nil)
	d.must(err)
	d.wantNodes("db none stopped -, web1 none stopped -, web2 none stopped -")
}

// TestWaysIntoNodes: running nodes can be entered. They are the live ones unless another release is
// selected. Members cannot enter privileged nodes.
func TestWaysIntoNodes(t *testing.T) {
	d := newDesk(t)
	d.up()
	d.stage(700)
	s := d.site()
	all, err := way.Runners(t.Context(), d.Session, s)
	d.must(err)
	if len(all) != 3 {
		t.Errorf("there are %d ways", len(all))
	}
	_, err = sites.Stop(t.Context(), d.Session, s, []string{"web1"})
	d.must(err)
	_, err = way.Runner(t.Context(), d.Session, s, "web1")
	d.wantExit(err, problem.Failed, "does not run", "orrery up web1")
	staged := *d.Session
	staged.Release = 700
	_, err = way.Runner(t.Context(), &staged, s, "web1")
	d.must(err)
	_, err = control.DeclaredNode(s, "web11")
	d.wantExit(err, problem.Usage, "did you mean web1?")
	if n, err := control.DeclaredNode(s, "db"); err != nil || n.ID != 11 {
		t.Errorf("%+v, %v", n, err)
	}
}

// TestFound: the site is that of the directory, or else the only one that is up.
func TestFound(t *testing.T) {
	d := newDesk(t)
	t.Chdir(t.TempDir())
	d.SiteDir = ""
	_, err := d.Load()
	d.wantExit(err, problem.Usage, "no site.toml in this directory")
	d.SiteDir = d.dir
	d.up()
	d.SiteDir = ""
	if s, err := d.Load(); err != nil || s.Name != "toykat" {
		t.Errorf("%+v, %v", s, err)
	}
	d.must(os.Rename(filepath.Join(d.dir, "site.toml"), filepath.Join(d.dir, "gone.toml")))
	_, err = d.Load()
	d.wantExit(err, problem.Usage, "its directory is gone", "orrery down --name toykat")
	t.Chdir(d.dir)
	d.must(os.Rename("gone.toml", "site.toml"))
	if dir, err := d.Directory(); err != nil || dir != "." {
		t.Errorf("%s, %v", dir, err)
	}
	d.Twin = "dev"
	_, err = d.Load()
	d.wantExit(err, problem.Mistake, "has no twin")
}

// TestStatusProbe: a probe finds nodes that have drifted or are sick, and these are listed first.
func TestStatusProbe(t *testing.T) {
	d := newDesk(t)
	d.up()
	d.stage(700)
	d.turnTo(700)
	d.sick = true
	status, err := status.Read(t.Context(), d.Session, d.site(), []string{"web2", "db", "web1"})
	d.must(err)
	status.CheckHealth(t.Context())
	status.UnhealthyFirst()
	var first []string
	for i, n := range status.Nodes {
		if i < 2 {
			first = append(first, n.Node+" "+n.Health)
		}
		if status.Declared(i) == nil {
			t.Errorf("%s is not declared", n.Node)
		}
	}
	if got := strings.Join(first, ", "); got != "web1 unhealthy, web2 unhealthy" {
		t.Errorf("first are %s", got)
	}
}

// TestBatchPutBack: a failing batch ends a rolling change. Its nodes get their former state back,
// and later nodes are not touched.
func TestBatchPutBack(t *testing.T) {
	d := newDesk(t)
	d.up()
	d.write("site.toml", strings.Replace(toykat, "roles  = [\"web\"]",
		"roles  = [\"web\"]\nmemory = \"64MiB\"\nprivileged = true", 1))
	d.fault.Fail("Start", "web1", 1, nil)
	one, ok := site.ParseBatch("1")
	if !ok {
		t.Fatal("1 is no batch")
	}
	_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{Batch: one})
	if err == nil || !strings.Contains(d.watch.text(), "web1: start: injected failure") {
		t.Fatalf("%v; told was %s", err, d.watch.text())
	}
	nodes, err := d.of("toykat").List(t.Context(), "toykat")
	d.must(err)
	for _, n := range nodes {
		if n.Name == "web2" && n.Privileged {
			t.Error("web2 was changed, too")
		}
	}
	d.up()
	d.wantNodes(allUp)
}

// TestGiveUpRollback: what rollback returns to is staged again only on request. Then rollback is no
// longer possible.
func TestGiveUpRollback(t *testing.T) {
	d := newDesk(t)
	d.up()
	for _, n := range []int{700, 701} {
		d.stage(n)
		d.turnTo(n)
	}
	staged, err := releases.Stage(t.Context(), d.Session, d.site(), nil, releases.StageOptions{Release: 700})
	d.must(err)
	if len(staged.Spared) != 3 {
		t.Errorf("spared were %v", staged.Spared)
	}
	if _, err = releases.Stage(t.Context(), d.Session, d.site(), nil,
		releases.StageOptions{Release: 700, GiveUp: true}); err != nil {
		t.Fatal(err)
	}
	_, err = releases.Rollback(t.Context(), d.Session, d.site(), nil)
	d.wantExit(err, problem.Mistake, "no former release")
	d.wantLive(701)
}

// TestReleaseOfTwin: a twin has its own releases.
func TestReleaseOfTwin(t *testing.T) {
	d := newDesk(t)
	d.up()
	_, _, err := twins.Create(t.Context(), d.Session, twinOf("toykat", d.dir, "dev"))
	d.must(err)
	of := *d.Session
	of.Twin = "dev"
	s, err := of.Load()
	d.must(err)
	_, err = releases.Stage(t.Context(), &of, s, nil, releases.StageOptions{Release: 700})
	d.must(err)
	made, err := releases.Switch(t.Context(), &of, s, nil, releases.SwitchOptions{Release: 700})
	d.must(err)
	if made.Site != "toykat.dev" || made.To["db"] != 700 {
		t.Errorf("switched was %+v", made)
	}
	d.wantLive(0) // of the original
	for edit, want := range map[string]string{"": "",
		"memory = \"99MiB\"\n": "changes of nodes wait for the next release, because release 700 is live: db: memory changed"} {
		d.write("site.toml", strings.Replace(toykat, "[node.db]\n", "[node.db]\n"+edit, 1))
		p, err := sites.Preview(t.Context(), &of, nil, sites.PreviewOptions{})
		d.must(err)
		if got := strings.Join(p.Warnings, "\n"); got != want || !p.Empty() {
			t.Errorf("after the edit %q plan says %q: %v", edit, got, p)
		}
	}
}

// TestForgottenTrial: if the process that watches a trial was killed, the next verb starts another
// one, or ends the trial if its time is over.
func TestForgottenTrial(t *testing.T) {
	d := newDesk(t)
	d.up()
	d.stage(700)
	made, err := releases.Switch(t.Context(), d.Session, d.site(), nil, releases.SwitchOptions{Release: 700, Within: hour})
	d.must(err)
	if made.Trial == nil {
		t.Fatal("there is no trial")
	}
	d.must(d.Cancel("trial-toykat")) // like a kill
	d.up()
	if waiting, _ := d.Waiting(); len(waiting) != 1 {
		t.Errorf("%v watch", waiting)
	}
	d.must(d.Cancel("trial-toykat"))
	d.must(os.Remove(apply.UnattendedPath(d.dirs, "toykat", apply.TriggerTrial))) // as left by a former version
	d.up()
	if waiting, _ := d.Waiting(); len(waiting) != 1 {
		t.Errorf("%v watch without a plan", waiting)
	}
	_, err = releases.Stage(t.Context(), d.Session, d.site(), nil, releases.StageOptions{Release: 701})
	d.must(err)
	_, err = releases.Switch(t.Context(), d.Session, d.site(), nil, releases.SwitchOptions{Release: 701})
	d.wantExit(err, problem.Mistake, "is on trial until")
	h, err := d.HostsWithoutReleases(t.Context(), d.site())
	d.must(err)
	r, err := h.Records().Read(t.Context())
	d.must(err)
	r.Trial.Until, r.Trial.Within = r.Trial.Until.Add(-2*hour), time.Nanosecond
	r.Trial.SetDeadline(observe.Timestamp{Calendar: time.Now().Add(-hour), Boot: r.Trial.Boot}, time.Nanosecond)
	d.must(h.Records().Write(t.Context(), r))
	d.up()
	d.wantLive(0)
	if !strings.Contains(d.watch.text(), "it ended while no process watched it") {
		t.Errorf("told was %s", d.watch.text())
	}
}

// TestOrphans: when a site comes up without a node, volumes that no node uses any more are listed.
func TestOrphans(t *testing.T) {
	d := newDesk(t)
	d.up()
	d.write("site.toml", strings.Replace(toykat, "[node.db]", "[node.ledger]", 1))
	d.up()
	if !strings.Contains(d.watch.text(), "orphan: ") || !strings.Contains(d.watch.text(), "archive") {
		t.Errorf("told was %s", d.watch.text())
	}
	if (orphan.Orphan{Node: "db.before"}).IsUnclaimed() {
		t.Error("what was set aside is unexpected")
	}
}

// TestMember: the actions of a member in nodes are in the journal, and the site's rules limit the
// member's twins.
func TestMember(t *testing.T) {
	d := newDesk(t)
	d.up()
	s := d.site()
	d.Member = &member.Person{Name: "ada"}
	ran := false
	d.must(control.JournalIfMember(d.Session, s, func() error { ran = true; return nil }))
	f, err := d.HostsWithoutReleases(t.Context(), s)
	d.must(err)
	entries, _, err := f.All[0].Runs.ReadJournal(t.Context(), 0)
	d.must(err)
	if last := entries[len(entries)-1]; !ran || last.Kind != "end" || last.Result != "done" {
		t.Errorf("the last entry is %+v", last)
	}
	of := twinOf("toykat", d.dir, "dev")
	of.Options = twin.Options{Name: "dev", Owner: "ada", NAT: true}
	err = twins.LimitForMember(d.Session, s, &of)
	d.wantExit(err, problem.Refused)
}
