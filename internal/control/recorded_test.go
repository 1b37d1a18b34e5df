package control_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/control/nodes"
	"orrery/internal/control/sites"
	"orrery/internal/control/status"
	"orrery/internal/control/twins"
	"orrery/internal/control/way"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// noted returns what the session was told since it was last asked.
func (d *desk) noted() string {
	text := d.watch.text()
	d.watch.mu.Lock()
	defer d.watch.mu.Unlock()
	d.watch.events = nil
	return text
}

// running loads the site for work with its nodes, and fails the test if that is not possible.
func (d *desk) running() *site.Site {
	d.Helper()
	s, err := d.LoadRunning()
	if err != nil {
		d.Fatal(err)
	}
	return s
}

// TestRunningWithMistakes: while site.toml has mistakes, its nodes can be seen, entered, stopped and
// started as they were brought up. One line says why. What needs the declaration refuses.
func TestRunningWithMistakes(t *testing.T) {
	d := newDesk(t)
	d.up()
	d.noted()
	whole := d.site()
	d.write("site.toml", strings.Replace(toykat, "[image.debian]", "[image.debian]\nsuit = \"x\"", 1)+"[nodes.x]\n")
	_, err := d.Load()
	d.wantExit(err, problem.Mistake, "site.toml:")
	s := d.running()
	told := d.noted()
	if !strings.HasPrefix(told, "notice: site.toml:") || strings.Count(told, "\n") > 0 ||
		!strings.HasSuffix(told, "(and 1 more mistake); using what this host has recorded") {
		t.Errorf("told is %q", told)
	}
	if len(s.Nodes) != len(whole.Nodes) || s.Key() != "toykat" || len(s.Roles) != len(whole.Roles) {
		t.Errorf("recorded is %+v", s)
	}
	ctx := t.Context()
	r, err := status.Read(ctx, d.Session, s, []string{"role=web"})
	d.must(err)
	if len(r.Nodes) != 2 || !r.Nodes[0].IsGood() {
		t.Errorf("%+v", r.Nodes)
	}
	_, err = way.Runner(ctx, d.Session, s, "db")
	d.must(err)
	_, err = sites.Stop(ctx, d.Session, s, []string{"web1"})
	d.must(err)
	_, err = sites.Start(ctx, d.Session, s, []string{"web1"})
	d.must(err)
	_, err = nodes.Restart(ctx, d.Session, s, nil)
	d.must(err)
	if h, err := nodes.ReadHistory(ctx, d.Session, s, 0); err != nil || len(h.Entries) == 0 {
		t.Errorf("%+v, %v", h, err)
	}
	if p, _, _, err := status.Draw(ctx, d.Session, s, nil, false); err != nil || len(p.Seen) != 3 {
		t.Errorf("%+v, %v", p, err)
	}
	_, err = nodes.FindNodePort(d.Session, s, "db:80")
	d.must(err)
	_, err = sites.Preview(ctx, d.Session, nil, sites.PreviewOptions{})
	d.wantExit(err, problem.Mistake, "site.toml:")
	d.noted()
	d.write("site.toml", toykat)
	if d.running(); d.noted() != "" {
		t.Error("a site without mistakes is reported")
	}
}

// TestRunningWithoutDirectory: nodes of a site whose directory is gone, or declares another site,
// are found by the name of the site, or because it is the only one.
func TestRunningWithoutDirectory(t *testing.T) {
	d := newDesk(t)
	d.up()
	d.noted()
	t.Chdir(t.TempDir())
	gone := filepath.Join(t.TempDir(), "gone")
	d.must(os.Rename(d.dir, gone))
	for _, said := range []string{"", "toykat", d.dir} {
		d.SiteDir = said
		if s := d.running(); s.Name != "toykat" || !strings.Contains(d.noted(), "; using what this host has recorded") {
			t.Errorf("-C %q: %+v", said, s)
		}
		if _, err := d.Load(); err == nil {
			t.Errorf("-C %q: a missing directory is loaded", said)
		}
	}
	d.must(os.Rename(gone, d.dir))
	d.write("site.toml", strings.Replace(toykat, `"toykat"`, `"other"`, 1))
	d.SiteDir = "toykat"
	_, err := d.Load()
	d.wantExit(err, problem.Mistake, "now declares site other and not toykat", "restore the name")
	if s := d.running(); s.Name != "toykat" || !strings.Contains(d.noted(), "now declares site other") {
		t.Errorf("%+v", s)
	}
	d.SiteDir = d.dir
	if s := d.running(); s.Name != "other" {
		t.Error("the directory is not the one that was named")
	}
}

// TestRunningOnHosts: nodes on other hosts are reached at the recorded addresses of these hosts.
func TestRunningOnHosts(t *testing.T) {
	d, _ := farDesk(t)
	d.up()
	d.write("site.toml", "x")
	s := d.running()
	r, err := status.Read(t.Context(), d.Session, s, nil)
	d.must(err)
	on := map[string]bool{}
	for _, n := range r.Nodes {
		on[n.Host] = n.IsGood()
	}
	if !on["sv1"] || !on["sv2"] || r.Silent != nil {
		t.Errorf("%+v, %v", r.Nodes, r.Silent)
	}
	all, err := way.Runners(t.Context(), d.Session, s)
	if d.must(err); len(all) != len(s.Nodes) {
		t.Errorf("there are %d ways", len(all))
	}
}

// TestRunningIsBroughtUp: only what a site that is up has on record is used, and only for that site.
//
// Promise (Members): Only root reads the record of a site directory, which is used for mistakes of
// that directory and site only. With control/members.TestBrokenSiteFile, test.TestNight.
func TestRunningIsBroughtUp(t *testing.T) {
	d := newDesk(t)
	refused := func(words ...string) {
		t.Helper()
		if s, err := d.LoadRunning(); err == nil {
			t.Errorf("loaded is %+v", s)
		} else {
			d.wantExit(err, problem.Mistake, words...)
		}
	}
	d.write("site.toml", "x")
	refused("site.toml:1")
	d.write("site.toml", toykat)
	d.up()
	other := t.TempDir()
	d.must(os.WriteFile(filepath.Join(other, "site.toml"), []byte("x"), 0o600))
	d.SiteDir = other // a directory from which nothing was brought up
	refused("site.toml:1")
	d.SiteDir = d.dir
	record := filepath.Join(d.dirs.Site("toykat"), "declared.json")
	info, err := os.Stat(record)
	d.must(err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("others can read the record: %v", info.Mode())
	}
	d.write("site.toml", "x")
	d.must(os.Rename(record, record+"-away"))
	refused("site.toml:1")
	for _, text := range []string{"{", `{"files": {"../site.toml": ""}}`, `{"files": {"site.toml": "eA=="}}`} {
		d.must(os.WriteFile(record, []byte(text), 0o600))
		refused("site.toml:1")
	}
	d.must(os.Rename(record+"-away", record))
	d.running()
	d.write("site.toml", toykat)
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
	if _, err := os.Stat(record); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the record of a site that is down: %v", err)
	}
	d.write("site.toml", "x")
	refused("site.toml:1")
}

// TestRecordIsRenewed: an edit that changes nothing on the hosts is recorded by the next up.
func TestRecordIsRenewed(t *testing.T) {
	d := newDesk(t)
	d.up()
	d.write("site.toml", toykat+"[group.front]\nnodes = [\"web*\"]\n")
	later := filepath.Join(d.dir, "site.toml")
	info, err := os.Stat(filepath.Join(d.dirs.Site("toykat"), "declared.json"))
	d.must(err)
	d.must(os.Chtimes(later, info.ModTime(), info.ModTime().Add(2e9)))
	d.up()
	d.write("site.toml", "x")
	if len(d.running().Groups) != 1 {
		t.Error("the group is not recorded")
	}
}

// TestRunningTwin: a twin is found by the name of its site, and its nodes are seen while the site
// file has mistakes.
func TestRunningTwin(t *testing.T) {
	d := newDesk(t)
	d.up()
	_, _, err := twins.Create(t.Context(), d.Session, twinOf("toykat", d.dir, "dev"))
	d.must(err)
	t.Chdir(t.TempDir())
	twin := d.ofTwin("dev")
	twin.SiteDir = "toykat"
	if s, err := twin.Load(); err != nil || s.Key() != "toykat.dev" {
		t.Errorf("%+v, %v", s, err)
	}
	d.write("site.toml", "x")
	d.noted()
	s, err := twin.LoadRunning()
	d.must(err)
	if s.Key() != "toykat.dev" || !strings.Contains(d.noted(), "using what this host has recorded") {
		t.Errorf("%+v", s)
	}
}

// TestNamed: -C takes the name of a site that is up, after a directory of that name.
func TestNamed(t *testing.T) {
	d := newDesk(t)
	d.up()
	t.Chdir(t.TempDir())
	for said, words := range map[string][]string{
		"toykta": {"toykta is neither a directory nor a site that is up on this host", "did you mean toykat?"},
		"zzz":    {"sites that are up: toykat"},
		"./zzz":  {"has no site.toml"},
	} {
		d.SiteDir = said
		_, err := d.Load()
		d.wantExit(err, problem.Mistake, words...)
	}
	d.SiteDir = "toykat"
	if dir, err := d.AbsDirectory(); err != nil || dir != d.dir {
		t.Errorf("%s, %v", dir, err)
	}
	d.must(os.Mkdir("toykat", 0o755)) // without a site file
	if s, err := d.Load(); err != nil || s.Name != "toykat" {
		t.Errorf("%+v, %v", s, err)
	}
	d.must(os.WriteFile("toykat/site.toml", []byte(strings.Replace(toykat, `"toykat"`, `"here"`, 1)), 0o600))
	d.must(os.CopyFS("toykat/roles", os.DirFS(filepath.Join(d.dir, "roles"))))
	if s, err := d.Load(); err != nil || s.Name != "here" {
		t.Errorf("%+v, %v", s, err)
	}
	fresh := newDesk(t)
	fresh.SiteDir = "zzz"
	_, err := fresh.Load()
	fresh.wantExit(err, problem.Mistake, "zzz is neither a directory nor a site", "orrery init zzz")
}

// TestUndeclared: nodes that exist but are not declared any more are shown last, and count as not
// as declared. A node shows the address that it has, if it is not the declared one.
func TestUndeclared(t *testing.T) {
	d := newDesk(t)
	d.up()
	d.write("site.toml", strings.Replace(strings.Replace(toykat, "{1..2}", "{1..1}", 1), "id     = 11", "id     = 12", 1))
	r, err := status.Read(t.Context(), d.Session, d.site(), nil)
	d.must(err)
	last := r.Nodes[len(r.Nodes)-1]
	if len(r.Nodes) != 3 || last.Node != "web2" || !last.Undeclared || last.IsGood() || last.State != "running" ||
		last.Addresses["lan"] != "10.99.1.22" {
		t.Errorf("%+v", r.Nodes)
	}
	for _, n := range r.Nodes[:2] {
		want := map[string]string{"db": "10.99.1.11"}[n.Node]
		if n.Undeclared || n.AnswersAt["lan"] != want || n.Node == "db" && n.Addresses["lan"] != "10.99.1.12" {
			t.Errorf("%+v", n)
		}
	}
	d.must(r.Probe(t.Context()))
	r.CheckHealth(t.Context())
	if p, _, _, err := status.Draw(t.Context(), d.Session, d.site(), nil, false); err != nil ||
		p.Seen["web2"].Word != "not declared" {
		t.Errorf("%+v, %v", p.Seen, err)
	}
	if r, err = status.Read(t.Context(), d.Session, d.site(), []string{"all"}); err != nil || len(r.Nodes) != 2 {
		t.Errorf("with a selector: %+v, %v", r, err)
	}
}

// TestFailedNode: a node on which a run failed says so, until it is configured and proven.
func TestFailedNode(t *testing.T) {
	d := diskDesk(t)
	fails := true
	d.of("toykat").Command = failing(&fails, "web1", "it does not answer")
	_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
	d.wantExit(err, problem.Left)
	see := func() status.Node {
		t.Helper()
		r, err := status.Read(t.Context(), d.Session, d.site(), []string{"web1"})
		d.must(err)
		return r.Nodes[0]
	}
	n := see()
	if n.Health != status.Failed || n.Failure == nil || n.Failure.Step != "check" || n.HealthAt.IsZero() ||
		!strings.Contains(n.Failure.Found, "role web: command ask") || n.Failure.See != "orrery status --probe web1" {
		t.Errorf("%+v, %+v", n, n.Failure)
	}
	fails = false
	d.up()
	if n = see(); n.Health != status.Healthy || n.Failure != nil {
		t.Errorf("%+v", n)
	}
}

// TestHealthHasAge: the result of a probe is kept with its time, whether it was good or bad.
func TestHealthHasAge(t *testing.T) {
	d := diskDesk(t)
	fails := false
	d.of("toykat").Command = failing(&fails, "web1", "it does not answer")
	d.up()
	probe := func() (after status.Node) {
		t.Helper()
		r, err := status.Read(t.Context(), d.Session, d.site(), []string{"web1"})
		d.must(err)
		d.must(r.Probe(t.Context()))
		again, err := status.Read(t.Context(), d.Session, d.site(), []string{"web1"})
		d.must(err)
		return again.Nodes[0]
	}
	if n := probe(); n.Health != status.Healthy || !n.HealthAt.After(n.ProvenAt) || n.Stale {
		t.Errorf("%+v", n)
	}
	fails = true
	n := probe()
	if n.Health != status.Unhealthy || !n.HealthAt.After(n.ProvenAt) {
		t.Errorf("%+v", n)
	}
	fails = false
	if again := probe(); again.Health != status.Healthy || !again.HealthAt.After(n.HealthAt) {
		t.Errorf("%+v", again)
	}
}

// failing returns the commands in nodes, of which the health check of one node fails while fails is
// set.
func failing(fails *bool, node, why string) func(context.Context, engine.Ref, host.Command) error {
	return func(_ context.Context, ref engine.Ref, c host.Command) error {
		if *fails && ref.Name == node && c.Args[0] == "ask" {
			return errors.New(why)
		}
		return nil
	}
}
