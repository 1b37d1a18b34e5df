package control_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/overdue"
	"orrery/internal/control/releases"
	"orrery/internal/control/sites"
	"orrery/internal/control/unattended"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/host/schedule"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

// onFarTrial returns a site on two hosts with a release on trial.
func onFarTrial(t *testing.T) (d *desk, other *machine) {
	t.Helper()
	d, other = farStaged(t)
	made, err := releases.Switch(t.Context(), d.Session, d.site(), nil, releases.SwitchOptions{Release: 700, Within: hour})
	d.must(err)
	if made.Trial == nil || !made.Trial.ByHand || made.Trial.Until.IsZero() {
		t.Fatalf("the trial is %+v", made.Trial)
	}
	for _, m := range []*machine{d.machine, other} {
		if w, _ := m.Waiting(); len(w) != 1 || w[0].Name != "trial-toykat" {
			t.Errorf("waiting are %v", w)
		}
	}
	d.wantLive(700)
	d.wantSame(700)
	return d, other
}

// watched lets a host on its own watch a trial whose time is over.
func (d *desk) watched(m *machine) error {
	d.Helper()
	h := m.Host("local", "toykat", nil)
	r, err := h.Releases.Read(d.Context())
	d.must(err)
	if r.Trial != nil {
		r.Trial.Until, r.Trial.Ends = time.Now().Add(-time.Second), 0
		d.must(h.Releases.Copy(d.Context(), r))
	}
	return (&unattended.Host{Machine: m, Dirs: m.dirs, Key: "toykat", Say: func(err error) { d.Error(err) }}).
		Run(d.Context(), apply.TriggerTrial, "")
}

// TestFarTrial: a confirmed release stays live on all hosts. Without confirmation, each host goes
// back with its own plan, without a control host.
func TestFarTrial(t *testing.T) {
	d, other := onFarTrial(t)
	_, err := releases.Switch(t.Context(), d.Session, d.site(), nil, releases.SwitchOptions{Release: 700})
	d.wantExit(err, problem.Mistake, "is on trial")
	d.up() // whatever is changed, the hosts update their rollback plans
	end, err := releases.Confirm(t.Context(), d.Session, d.site(), "by hand")
	d.must(err)
	if end.Result != observe.Confirmed {
		t.Errorf("it ended as %+v", end)
	}
	d.must(d.watched(other))
	d.wantLive(700)
	d.wantSame(700)
	_, err = releases.Rollback(t.Context(), d.Session, d.site(), nil)
	d.must(err)

	text, err := os.ReadFile(filepath.Join(d.dir, "site.toml"))
	d.must(err)
	d.write("site.toml", string(text)+
		"\n[hook.page]\non = [\"trial-ended\"]\ncommand = [\"/bin/page\"]\n[hook.quiet]\non = [\"backup-done\"]\ncommand = [\"/bin/page\"]\n")
	_, err = releases.Switch(t.Context(), d.Session, d.site(), nil, releases.SwitchOptions{Release: 700, Within: hour})
	d.must(err)
	d.Links.Close()
	d.machine.others = nil // the hosts cannot reach each other
	d.wantExit(d.watched(other), problem.Reverted, "it was not confirmed")
	d.wantExit(d.watched(d.machine), problem.Reverted, "it was not confirmed")
	d.machine.others = map[string]*machine{"sv2": other}
	d.wantLive(0)
	d.wantSame(0)
	for host, m := range map[string]*machine{"sv1": d.machine, "sv2": other} { // each host notifies its own hooks
		letters, err := filepath.Glob(filepath.Join(m.dirs.Site("toykat"), "hooks", "*.json"))
		d.must(err)
		all, _ := m.Waiting()
		if len(letters) == 0 || !slices.ContainsFunc(all, func(w schedule.Pending) bool { return w.Name == "hooks-toykat" }) {
			t.Fatalf("%s: to be told are %v, and waiting %v", host, letters, all)
		}
		text, err := os.ReadFile(letters[len(letters)-1])
		d.must(err)
		for _, want := range []string{`"event": "trial-ended"`, `"result": "reverted"`, `"release": 700`,
			"it was not confirmed", "/bin/page"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: %s is not in %s", host, want, text)
			}
		}
		if strings.Contains(string(text), "quiet") {
			t.Errorf("%s: a hook of something else is told: %s", host, text)
		}
	}
	_, err = releases.Confirm(t.Context(), d.Session, d.site(), "by hand")
	d.wantExit(err, problem.Reverted, "it was not confirmed")
	d.up()
	d.turnTo(700)
	d.wantLive(700)
	d.wantSame(700)
}

// TestFarTrialChanged: a change of the site during a trial updates the rollback plan, even for a
// process that watches already.
func TestFarTrialChanged(t *testing.T) {
	d, other := onFarTrial(t)
	path := apply.UnattendedPath(other.dirs, "toykat", apply.TriggerTrial)
	whole, err := os.ReadFile(path)
	d.must(err)
	over, said, looked := make(chan error, 1), make(chan error, 100), make(chan bool, 100)
	other.slow = func() {
		select {
		case looked <- true:
		default:
		}
	}
	go func() {
		over <- (&unattended.Host{Machine: other, Dirs: other.dirs, Key: "toykat", Say: func(err error) { said <- err }}).
			Run(t.Context(), apply.TriggerTrial, "")
	}()
	<-looked // it has read the plan
	d.must(os.WriteFile(path, []byte("{"), 0o600))
	<-said // it reads the plan each time
	d.must(os.WriteFile(path, whole, 0o600))
	h := other.Host("sv2", "toykat", nil)
	r, err := h.Releases.Read(t.Context())
	d.must(err)
	r.Trial.Until, r.Trial.Ends = time.Now().Add(-time.Second), 0
	d.must(h.Releases.Copy(t.Context(), r))
	d.wantExit(<-over, problem.Reverted, "it was not confirmed")
}

// TestFarTrialApart: if only one of two hosts has gone back or knows of the confirmation, that is
// reported. The next run brings all hosts to one release.
func TestFarTrialApart(t *testing.T) {
	for what, second := range map[string]func(d *desk){
		"still on trial": func(*desk) {},
		"confirmed": func(d *desk) {
			h := d.machine.Host("sv1", "toykat", nil)
			r, err := h.Releases.Read(t.Context())
			d.must(err)
			r.Confirm(700)
			r.Ended, r.Trial = &observe.TrialEnd{Release: 700, Result: observe.Confirmed}, nil
			d.must(h.Releases.Write(t.Context(), r))
		},
	} {
		d, other := onFarTrial(t)
		d.wantExit(d.watched(other), problem.Reverted, "it was not confirmed")
		second(d)
		d.wantNodes("db 700 running healthy, db* none running retired, web1 none running healthy, web1* 700 running healthy, web2 none running healthy, web2* 700 running healthy")
		_, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
		d.wantExit(err, problem.HalfWay, "under way or was interrupted")
		_, err = releases.Confirm(t.Context(), d.Session, d.site(), "by hand")
		d.wantExit(err, problem.HalfWay)
		d.up()
		d.wantLive(0)
		d.wantSame(0)
		if p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{}); err != nil || !p.Empty() {
			t.Errorf("%s: a plan afterwards: %v, %v", what, p, err)
		}
		_, err = releases.Confirm(t.Context(), d.Session, d.site(), "by hand")
		d.wantExit(err, problem.Reverted, "it was not confirmed")
		d.turnTo(700)
		d.wantSame(700)
	}
}

// TestFarTrialFails: a failed check on one host prevents confirmation. That host does not go back
// before the others.
func TestFarTrialFails(t *testing.T) {
	d, other := onFarTrial(t)
	other.of("toykat").Command = func(_ context.Context, _ engine.Ref, c host.Command) error {
		if c.Args[0] == "ask" {
			return errors.New("it does not answer")
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		over <- (&unattended.Host{Machine: other, Dirs: other.dirs, Key: "toykat", Say: func(error) {}}).
			Run(ctx, apply.TriggerTrial, "")
	}()
	h := other.Host("sv2", "toykat", nil)
	for range 600 {
		if r, err := h.Releases.Read(t.Context()); err == nil && r.Trial != nil && r.Trial.Failed != "" {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	cancel()
	<-over
	d.wantLive(700)
	d.wantSame(700)
	_, err := releases.Confirm(t.Context(), d.Session, d.site(), "by hand")
	d.wantExit(err, problem.Refused, "failed on host sv2", "node web1 is unhealthy")
	other.of("toykat").Command = nil
	_, err = releases.Rollback(t.Context(), d.Session, d.site(), nil)
	d.must(err)
	d.wantLive(0)
	d.wantSame(0)
}

// TestFarTrialCut: if the control host is lost before all hosts have their rollback plans, that
// counts as an interrupted switch.
func TestFarTrialCut(t *testing.T) {
	d, other := farStaged(t)
	d.machine.noLater, other.noLater = errors.New("no process can be begun"), errors.New("no process can be begun")
	_, err := releases.Switch(t.Context(), d.Session, d.site(), nil, releases.SwitchOptions{Release: 700, Within: hour})
	d.wantExit(err, problem.HalfWay, "its trial could not start")
	d.machine.noLater, other.noLater = nil, nil
	_, err = sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	d.wantExit(err, problem.HalfWay, "interrupted")
	d.up()
	d.wantLive(0)
	d.wantSame(0)
}

// TestTrialTold: the trial's end and what happens then are reported. A host on which the trial has
// failed is named, and prevents confirmation.
func TestTrialTold(t *testing.T) {
	d, other := onFarTrial(t)
	told := func(d *desk, words ...string) {
		t.Helper()
		d.watch.events = nil
		d.must(overdue.ReportPending(t.Context(), d.Session, d.site()))
		for _, want := range append(words, "notice: release 700 is on trial until ") {
			if text := d.watch.text(); !strings.Contains(text, want) {
				t.Errorf("%q is not in what was told: %s", want, text)
			}
		}
	}
	told(d, "unless it is confirmed by then (orrery confirm), each host goes back to release none")
	h := other.Host("local", "toykat", nil)
	r, err := h.Releases.Read(t.Context())
	d.must(err)
	r.Trial.Failed = "node web1 is unhealthy"
	d.must(h.Releases.Copy(t.Context(), r))
	told(d, "notice: the release has failed on host sv2: node web1 is unhealthy")
	_, err = releases.Confirm(t.Context(), d.Session, d.site(), "by hand")
	d.wantExit(err, problem.Refused, "release 700 has failed on host sv2: node web1 is unhealthy", "orrery rollback")

	one := newDesk(t)
	one.up()
	one.stage(700)
	_, err = releases.Switch(t.Context(), one.Session, one.site(), nil, releases.SwitchOptions{Release: 700, Within: hour})
	one.must(err)
	told(one, "the process that watched it has ended")
	lock, err := host.TakeLockWithin(t.Context(), time.Second, apply.WatchLock(one.dirs, "toykat", apply.TriggerTrial),
		control.Holder(one.Session))
	one.must(err)
	defer lock.Release()
	told(one, "then it is confirmed or goes back to release none")
}
