package control_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/overdue"
	"orrery/internal/control/releases"
	"orrery/internal/control/sites"
	"orrery/internal/engine"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

const hour = time.Hour

func twinOf(name, dir, as string) twin.Record {
	return twin.Record{
		Site: name, Dir: dir, Options: twin.Options{Name: as, Owner: control.UserName()}, Volumes: site.CopyEmpty,
		Created: time.Now().UTC().Truncate(time.Second),
	}
}

func (d *desk) stage(release int) {
	d.Helper()
	_, err := releases.Stage(d.Context(), d.Session, d.site(), nil, releases.StageOptions{Release: release})
	d.must(err)
}

func (d *desk) turnTo(release int) *releases.Switched {
	d.Helper()
	made, err := releases.Switch(d.Context(), d.Session, d.site(), nil, releases.SwitchOptions{Release: release})
	d.must(err)
	return made
}

func atRelease(n int) string {
	return fmt.Sprintf("db %[1]d running healthy, web1 %[1]d running healthy, web2 %[1]d running healthy", n)
}

// Nodes in quarantine are left out.
func (d *desk) wantLive(release int) {
	d.Helper()
	var live []string
	for _, n := range strings.Split(d.nodes(), ", ") {
		if !strings.Contains(n, "*") {
			live = append(live, n)
		}
	}
	want := allUp
	if release > 0 {
		want = atRelease(release)
	}
	if got := strings.Join(live, ", "); got != want {
		d.Errorf("live are %s\nnot %s", got, want)
	}
}

// TestReleases: releases are staged beside the live one, switched to and from, and rolled back.
func TestReleases(t *testing.T) {
	d := newDesk(t)
	d.up()
	d.stage(700)
	d.wantLive(0)
	if !strings.Contains(d.nodes(), "web1* 700 running healthy") {
		t.Errorf("the nodes are %s", d.nodes())
	}
	made := d.turnTo(700)
	if made.Already || !made.Kept || made.To["db"] != 700 || made.From["db"] != 0 {
		t.Errorf("switched was %+v", made)
	}
	d.wantLive(700)
	if made := d.turnTo(700); !made.Already {
		t.Errorf("switched again was %+v", made)
	}
	d.stage(701)
	d.turnTo(701)
	d.wantLive(701)
	if _, err := releases.Rollback(t.Context(), d.Session, d.site(), nil); err != nil {
		t.Fatal(err)
	}
	d.wantLive(700)
	d.turnTo(701) // forward again, without staging
	d.wantLive(701)
	_, err := releases.Switch(t.Context(), d.Session, d.site(), nil, releases.SwitchOptions{Release: 702})
	d.wantExit(err, problem.Mistake, "702")
	_, err = releases.Stage(t.Context(), d.Session, d.site(), nil, releases.StageOptions{})
	d.wantExit(err, problem.Usage)
	d.up()
	d.wantLive(701)
}

// TestSwitchFails: a failing switch is undone completely.
func TestSwitchFails(t *testing.T) {
	d := newDesk(t)
	d.up()
	d.stage(700)
	d.fault.Fail("move", "", 1, nil)
	_, err := releases.Switch(t.Context(), d.Session, d.site(), nil, releases.SwitchOptions{Release: 700})
	d.wantExit(err, problem.Reverted, "back at release none")
	d.wantLive(0)
	d.turnTo(700)
	d.wantLive(700)
}

// TestTrial: a release on trial stays live if it is confirmed or its checks hold. It goes back if a
// check fails or no confirmation comes.
func TestTrial(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.up()
	d.stage(700)
	on := func(o releases.SwitchOptions) {
		t.Helper()
		o.Release = 700
		made, err := releases.Switch(t.Context(), d.Session, d.site(), nil, o)
		d.must(err)
		if made.Trial == nil {
			t.Fatalf("there is no trial: %+v", made)
		}
		if waiting, _ := d.Waiting(); len(waiting) == 0 {
			t.Error("nobody watches")
		}
	}
	on(releases.SwitchOptions{Within: hour})
	d.must(overdue.ReportPending(d.Context(), d.Session, d.site()))
	if !strings.Contains(d.watch.text(), "the process that watched it has ended") {
		t.Errorf("told was %s", d.watch.text())
	}
	end, err := releases.Confirm(t.Context(), d.Session, d.site(), "by hand")
	d.must(err)
	if end.Result != observe.Confirmed || end.Release != 700 {
		t.Errorf("it ended with %+v", end)
	}
	if end, err := releases.AwaitTrial(t.Context(), d.Session, d.site()); err != nil || end.Result != observe.Confirmed {
		t.Errorf("%+v, %v", end, err)
	}
	watch := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return control.Unattended(d.Session, "toykat").Run(ctx, apply.TriggerTrial, "")
	}
	back := func() {
		t.Helper()
		if _, err := releases.Rollback(t.Context(), d.Session, d.site(), nil); err != nil {
			t.Fatal(err)
		}
	}
	back()
	on(releases.SwitchOptions{Within: time.Millisecond})
	d.must(watch())
	if end, err := releases.Confirm(t.Context(), d.Session, d.site(), "by hand"); err != nil ||
		end.Why != "its health checks held" {
		t.Errorf("it ended with %+v, %v", end, err)
	}
	back()
	on(releases.SwitchOptions{Within: time.Millisecond, ByHand: true})
	d.wantExit(watch(), problem.Reverted, "it was not confirmed")
	d.wantLive(0)
	on(releases.SwitchOptions{Within: hour})
	d.sick = true
	d.wantExit(watch(), problem.Reverted, "node web", "is unhealthy")
	d.sick = false
	d.wantLive(0)

	// A frozen node counts as sick, too.
	on(releases.SwitchOptions{Within: hour})
	nodes, err := d.of("toykat").List(t.Context(), "toykat")
	d.must(err)
	for i := range nodes {
		if n := &nodes[i]; n.Name == "web1" && n.Release == 700 {
			d.must(d.of("toykat").Stop(t.Context(), engine.RefOf(&n.Node)))
		}
	}
	d.wantExit(watch(), problem.Reverted, "node web1 does not run")
	d.wantLive(0)

	// An unreadable site directory does not prevent going back.
	on(releases.SwitchOptions{Within: time.Millisecond, ByHand: true})
	text, err := os.ReadFile(filepath.Join(d.dir, "site.toml"))
	d.must(err)
	d.write("site.toml", "[")
	d.wantExit(watch(), problem.Reverted, "it was not confirmed")
	d.write("site.toml", string(text))
	d.wantLive(0)
	_, err = releases.Confirm(t.Context(), d.Session, d.site(), "by hand")
	d.wantExit(err, problem.Reverted)
}

// TestKilled: an operation is killed at every point, and the next up repairs the site.
func TestKilled(t *testing.T) {
	for name, op := range map[string]struct {
		before  func(d *desk)
		do      func(ctx context.Context, d *desk) error
		release []int // one of them is live in the end
	}{
		"up": {func(*desk) {}, func(ctx context.Context, d *desk) error {
			_, _, err := sites.Up(ctx, d.Session, d.site(), nil, sites.UpOptions{})
			return err
		}, []int{0}},
		"stage": {(*desk).up, func(ctx context.Context, d *desk) error {
			_, err := releases.Stage(ctx, d.Session, d.site(), nil, releases.StageOptions{Release: 700})
			return err
		}, []int{0}},
		"switch": {func(d *desk) { d.up(); d.stage(700) }, func(ctx context.Context, d *desk) error {
			_, err := releases.Switch(ctx, d.Session, d.site(), nil, releases.SwitchOptions{Release: 700})
			return err
		}, []int{0, 700}},
		"rollback": {func(d *desk) { d.up(); d.stage(700); d.turnTo(700) }, func(ctx context.Context, d *desk) error {
			_, err := releases.Rollback(ctx, d.Session, d.site(), nil)
			return err
		}, []int{0, 700}},
		"stop": {(*desk).up, func(ctx context.Context, d *desk) error {
			_, err := sites.Stop(ctx, d.Session, d.site(), nil)
			return err
		}, []int{0}},
		"down": {(*desk).up, func(ctx context.Context, d *desk) error {
			_, err := sites.Down(ctx, d.Session, d.site(), nil, false)
			return err
		}, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				d := newDesk(t)
				op.before(d)
				d.fault.KillAt(n)
				ctx, cancel := d.fault.KillContext(t.Context()) // like everything that a process waits for
				err := op.do(ctx, d)
				cancel()
				d.fault.Revive()
				d.up()
				nodes := d.nodes()
				ok := false
				for _, r := range op.release {
					ok = ok || strings.HasPrefix(strings.ReplaceAll(nodes, "none", "0"), fmt.Sprintf("db %d running healthy", r))
				}
				if !ok {
					t.Fatalf("killed at %d (%v), the nodes are %s", n, err, nodes)
				}
				if r, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{}); err != nil || r != nil {
					t.Fatalf("killed at %d, the second up: %+v, %v", n, r, err)
				}
				if err == nil { // it was over before
					if n < 4 {
						t.Errorf("it was over after %d operations", n)
					}
					break
				}
			}
		})
	}
}

// TestEditsWait: as long as a release is live, plan and up report which edits of the site directory
// do not reach its nodes, and why. They do not report edits that reach the nodes, or nodes that are
// not concerned.
func TestEditsWait(t *testing.T) {
	d := newDesk(t)
	d.up()
	d.stage(700)
	d.turnTo(700)
	warnings := func(selectors ...string) string {
		t.Helper()
		p, err := sites.Preview(t.Context(), d.Session, selectors, sites.PreviewOptions{})
		d.must(err)
		if !p.Empty() {
			t.Errorf("something is to be done: %v", p)
		}
		return strings.Join(p.Warnings, "\n")
	}
	if got := warnings(); got != "" {
		t.Errorf("nothing was edited, and plan says %q", got)
	}
	d.write("roles/web/role.toml",
		"[[file]]\npath = \"/etc/web\"\ntemplate = \"web\"\n[[step]]\nname = \"page\"\nwhen = \"active\"\nscript = \"true\"\n")
	d.write("roles/web/web", "{{ .Node.Name }} is on {{ .Node.Host }}")
	d.write("site.toml", strings.Replace(toykat, "roles  = [\"db\"]\n", "roles  = [\"db\"]\nmemory = \"99MiB\"\n", 1))
	const web = "web1, web2: web: file /etc/web added, web: step page added"
	if got, want := warnings(), "changes of nodes wait for the next release, because release 700 is live: db: memory changed; "+web; got != want {
		t.Errorf("plan says\n%q, not\n%q", got, want)
	}
	if got := warnings("role=web"); !strings.HasSuffix(got, ": "+web) {
		t.Errorf("of role=web plan says %q", got)
	}
	_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
	d.must(err)
	if got := d.watch.text(); !strings.Contains(got, "notice: changes of nodes wait for the next release") {
		t.Errorf("up told\n%s", got)
	}
	_, err = releases.Rollback(t.Context(), d.Session, d.site(), nil)
	d.must(err)
	if p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{}); err != nil || p.Empty() ||
		len(p.Warnings) > 0 {
		t.Errorf("without a release nothing waits: %v, %v", p, err)
	}
	d.up()
	d.wantSaid("web1", "/etc/web", "web1 is on local")
}

// TestDownKeepsRelease: a site that is taken down at a release, with or without its data, comes up
// at that release again. down, plan and up report that.
func TestDownKeepsRelease(t *testing.T) {
	d := newDesk(t)
	d.up()
	d.stage(700)
	d.turnTo(700)
	_, err := sites.Down(t.Context(), d.Session, d.site(), []string{"db"}, false)
	d.must(err)
	if p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{}); err != nil || len(p.Warnings) > 0 {
		t.Errorf("of a site that is not taken down: %v, %v", p, err)
	}
	const down = "release 700 stays live: the next orrery up starts it again"
	for warning, selectors := range map[string][]string{down: nil, "": {"web1"}} {
		p, err := sites.Preview(t.Context(), d.Session, selectors, sites.PreviewOptions{Down: true})
		if err != nil || strings.Join(p.Warnings, "\n") != warning {
			t.Errorf("plan --down of %q warns of %q, %v", selectors, p.Warnings, err)
		}
	}
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, true)
	d.must(err)
	if got := d.watch.text(); strings.Count(got, "notice: "+down) != 1 {
		t.Errorf("down told\n%s", got)
	}
	const up = "release 700 is started again, because it was live when the site was taken down"
	p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	if err != nil || strings.Join(p.Warnings, "\n") != up {
		t.Errorf("plan says %q, %v", p.Warnings, err)
	}
	d.up()
	if got := d.watch.text(); strings.Count(got, "notice: "+up) != 1 {
		t.Errorf("up told\n%s", got)
	}
	d.wantLive(700)
}

// TestUnreadableRelease: if the copy of a live release's site directory cannot be read, that is
// reported, on one host and on several. What needs the copy is refused. The site can still be shown
// and taken down.
func TestUnreadableRelease(t *testing.T) {
	d := newDesk(t)
	d.Without = []string{"sv2"}
	_, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	d.wantExit(err, problem.Usage, "the only host and cannot be left out")
	d.Without = nil
	d.up()
	d.stage(700)
	d.turnTo(700)
	d.must(os.WriteFile(filepath.Join(d.dirs.Release("toykat", 700), "site/site.toml"), []byte("["), 0o600))
	_, err = sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	d.wantExit(err, problem.Mistake, "release 700 of site toykat: its copy of the site directory cannot be read")
	d.wantLive(700)
	if !strings.Contains(d.watch.text(), "release 700 of site toykat: its copy of the site directory cannot be read") {
		t.Errorf("told was %s", d.watch.text())
	}
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
}
