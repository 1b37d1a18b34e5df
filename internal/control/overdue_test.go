package control_test

import (
	"context"
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
	"orrery/internal/control/twins"
	"orrery/internal/host"
	twinrecords "orrery/internal/host/twins"
	"orrery/internal/member"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

func (d *desk) ofTwin(name string) *desk {
	of, session := *d, *d.Session
	session.Twin = name
	of.Session = &session
	return &of
}

// makeEndingTwin creates a twin that expires in an hour.
func (d *desk) makeEndingTwin() error {
	of := twinOf("toykat", d.dir, "dev")
	of.Expires = of.Created.Add(hour)
	_, _, err := twins.Create(d.Context(), d.Session, of)
	return err
}

// expired sets the expiry time of the twin on a machine.
func (d *desk) expired(m *machine, at time.Time) {
	d.Helper()
	p, err := apply.ReadUnattended(m.dirs, "toykat.dev", apply.TriggerExpiry)
	d.must(err)
	p.At = at
	d.must(p.Write(m.dirs, "toykat.dev"))
	r, err := twinrecords.Read(m.dirs, "toykat.dev")
	d.must(err)
	r.Expires = at
	d.must(twinrecords.Write(m.dirs, r))
}

// TestTwinEnds: a process waits for the end of an expiring twin. If it was killed, the next verb
// starts another one, and reports that.
func TestTwinEnds(t *testing.T) {
	d := newDesk(t)
	d.up()
	d.must(d.makeEndingTwin())
	waits := func() bool {
		waiting, _ := d.Waiting()
		return len(waiting) == 1 && waiting[0].Name == "expiry-toykat.dev"
	}
	if !waits() {
		t.Error("nobody waits for its end")
	}
	d.must(d.Cancel("expiry-toykat.dev")) // like a kill
	s, err := d.ofTwin("dev").Load()
	d.must(err)
	d.must(overdue.ReportPending(d.Context(), d.Session, s))
	if !strings.Contains(d.watch.text(), "the process that waited for that has ended") {
		t.Errorf("told was %s", d.watch.text())
	}
	_, err = sites.Start(t.Context(), d.Session, d.site(), nil) // a change of any site carries out overdue work
	d.must(err)
	if !waits() {
		t.Error("nobody waits for its end again")
	}
	d.must(d.Cancel("expiry-toykat.dev"))
	d.must(overdue.ResumeExpiries(t.Context(), d.Session))
	if !waits() {
		t.Error("nobody waits for its end after a reboot")
	}

	d.must(d.Cancel("expiry-toykat.dev"))
	d.expired(d.machine, time.Now().Add(-hour))
	// another process holds its lock
	lock, err := host.TakeLock(t.Context(), d.dirs.Lock("toykat.dev"), control.Holder(d.Session))
	d.must(err)
	_, err = sites.Start(t.Context(), d.Session, d.site(), nil)
	d.must(err)
	lock.Release()
	if !waits() || len(d.Register().Twins()) != 1 {
		t.Errorf("what is overdue of a twin at which somebody is at work: %v", d.Register().Twins())
	}
	d.must(d.Cancel("expiry-toykat.dev"))
	d.fault.Fail("Destroy", "", 1, nil)
	d.wantExit(overdue.ResumeExpiries(t.Context(), d.Session), problem.Failed,
		"twin toykat.dev has expired and could not be destroyed", "orrery twin destroy dev")
	twin := d.ofTwin("dev")
	_, err = sites.Stop(t.Context(), twin.Session, s, nil)
	d.wantExit(err, problem.Surprise, "twin dev expired at", "orrery twin create creates another")
	if len(d.Register().Twins()) > 0 {
		t.Errorf("there are %+v", d.Register().Twins())
	}
	d.must(overdue.ResumeExpiries(t.Context(), d.Session))
}

// TestTwinMeant: a twin is found by its name, unless several sites have a twin of that name.
func TestTwinMeant(t *testing.T) {
	d := newDesk(t)
	d.up()
	t.Chdir(t.TempDir())
	for _, name := range []string{"toykat", "karoo"} {
		of := twinOf(name, d.dir, "dev")
		if name == "karoo" {
			of.Dir = t.TempDir()
		}
		d.must(d.Register().WriteTwin(of))
	}
	twin := d.ofTwin("dev")
	twin.SiteDir = ""
	_, err := twin.Directory()
	d.wantExit(err, problem.Usage, "2 sites have a twin called dev")
	d.wantExit(twins.Destroy(t.Context(), twin.Session, "dev"), problem.Usage, "2 sites have a twin called dev: ",
		"use -C")
	d.must(twins.Destroy(t.Context(), d.Session, "dev")) // of the site of -C
	if dir, err := twin.Directory(); err != nil || dir == d.dir {
		t.Errorf("%s, %v", dir, err)
	}
	d.wantExit(twins.Destroy(t.Context(), twin.Session, "dave"), problem.Mistake,
		"no twin \"dave\" on this host", "did you mean dev?")
	d.must(twins.Destroy(t.Context(), twin.Session, "dev"))
	_, err = twin.Directory()
	d.wantExit(err, problem.Mistake, "no twin \"dev\" on this host")
	d.must(os.MkdirAll(d.dirs.Site("toykat.dev"), 0o700))
	d.must(os.WriteFile(d.Register().TwinPath("toykat.dev"), []byte("{"), 0o600))
	_, err = d.ofTwin("dev").Load()
	d.wantExit(err, problem.Failed, "the record of twin dev cannot be read", "orrery twin destroy dev")
}

// TestTwinWithSecrets: a twin with copied volumes has the secrets with which their data was
// created.
func TestTwinWithSecrets(t *testing.T) {
	d := diskDesk(t)
	d.write("roles/db/role.toml",
		"[[volume]]\nname = \"archive\"\npath = \"/srv/archive\"\n[[secret]]\nname = \"ledger\"\n")
	d.write("site.toml", toykat+"[secret.ledger]\ngenerate = 24\n")
	d.up()
	d.say("db", book, "paid")
	of := twinOf("toykat", d.dir, "dev")
	of.Volumes = site.CopySnapshot
	_, _, err := twins.Create(t.Context(), d.Session, of)
	d.must(err)
	d.ofTwin("dev").wantSaid("db", book, "paid")
	original, err := os.ReadFile(filepath.Join(d.dirs.Secrets("toykat"), "ledger"))
	d.must(err)
	copied, err := os.ReadFile(filepath.Join(d.dirs.Secrets("toykat.dev"), "ledger"))
	d.must(err)
	if string(copied) != string(original) {
		t.Error("the twin has another secret")
	}
	d.must(twins.Destroy(t.Context(), d.Session, "dev"))
	fails := filepath.Join(d.dir, "fails")
	d.must(os.WriteFile(fails, []byte("#!/bin/sh\nexit 3\n"), 0o755))
	of.Volumes = fails
	_, _, err = twins.Create(t.Context(), d.Session, of)
	d.wantExit(err, problem.Failed, "did not fill volume archive of node db", "continue with orrery --twin dev up")
	d.must(twins.Destroy(t.Context(), d.Session, "dev"))
	_, _, err = twins.LoadOriginal(d.Session, "no-such-site")
	d.wantExit(err, problem.Usage, "neither a site directory nor a site that is up on this host")
}

// onTrialOfOtherBoot returns a site with a release on trial since before a reboot, its hosts, and their record.
func onTrialOfOtherBoot(t *testing.T) (*desk, *apply.Fleet, observe.Releases) {
	t.Helper()
	d := newDesk(t)
	d.up()
	d.stage(700)
	_, err := releases.Switch(t.Context(), d.Session, d.site(), nil,
		releases.SwitchOptions{Release: 700, Within: hour, ByHand: true})
	d.must(err)
	d.must(d.Cancel("trial-toykat"))
	h, err := d.HostsWithoutReleases(t.Context(), d.site())
	d.must(err)
	r, err := h.Records().Read(t.Context())
	d.must(err)
	r.Trial.Boot = "another"
	d.must(h.Records().Write(t.Context(), r))
	return d, h, r
}

// TestTrialAfterReboot: after a reboot, the rest of a trial's time counts by the clock of the new
// boot, once the nodes are up again.
func TestTrialAfterReboot(t *testing.T) {
	d, h, _ := onTrialOfOtherBoot(t)
	_, err := sites.Stop(t.Context(), d.Session, d.site(), []string{"web1"})
	d.must(err)
	if !strings.Contains(d.watch.text(), "the trial of release 700 has not been watched since the host rebooted") {
		t.Errorf("told was %s", d.watch.text())
	}
	if waiting, _ := d.Waiting(); len(waiting) > 0 {
		t.Errorf("%v watch over it although its nodes do not run", waiting)
	}
	d.up()
	if waiting, _ := d.Waiting(); len(waiting) != 1 {
		t.Errorf("%v watch over it", waiting)
	}
	now, err := h.Records().Read(t.Context())
	d.must(err)
	if now.Trial == nil || now.Trial.Boot == "another" {
		t.Errorf("the trial is %+v", now.Trial)
	}
	if !strings.Contains(d.watch.text(), "stays live only if you confirm it (orrery confirm)") {
		t.Errorf("told was %s", d.watch.text())
	}
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, false) // ends the trial
	d.must(err)
	if waiting, _ := d.Waiting(); len(waiting) > 0 {
		t.Errorf("%v watch over a site that is down", waiting)
	}
	_, err = releases.Confirm(t.Context(), d.Session, d.site(), "by hand")
	d.wantExit(err, problem.Mistake, "no release is on trial")
}

// TestTrialEndsMeanwhile: a trial that another process ends while it is resumed stays ended.
func TestTrialEndsMeanwhile(t *testing.T) {
	d, h, r := onTrialOfOtherBoot(t)
	lock, err := host.TakeLock(t.Context(), d.dirs.Lock("toykat"), host.NewHolder("root", "orrery confirm"))
	d.must(err)
	time.AfterFunc(50*time.Millisecond, func() {
		defer lock.Release()
		r.Trial = nil
		if err := h.Records().Write(t.Context(), r); err != nil {
			t.Error(err)
		}
	})
	d.must(overdue.ResumeTrial(t.Context(), d.Session, d.site()))
	if r, err := h.Records().Read(t.Context()); err != nil || r.Trial != nil {
		t.Errorf("the trial is %+v (%v)", r.Trial, err)
	}
	if waiting, _ := d.Waiting(); len(waiting) > 0 {
		t.Errorf("%v watch over a trial that has ended", waiting)
	}
}

// TestDownOnOverdueTrial: a trial that is over, and whose nodes cannot go back, does not keep anybody from taking
// the site down.
func TestDownOnOverdueTrial(t *testing.T) {
	d, h, r := onTrialOfOtherBoot(t)
	r.Trial.SetDeadline(host.Now(), -hour) // of this boot
	d.must(h.Records().Write(t.Context(), r))
	d.fault.Fail("move", "", -1, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := sites.Down(ctx, d.Session, d.site(), nil, false)
	d.must(err)
	const told = "the trial of a release is over, but it could not be ended: set 3 nodes: move: injected failure"
	if !strings.Contains(d.watch.text(), told) {
		t.Errorf("told was %s", d.watch.text())
	}
	d.wantNodes("db none absent -, web1 none absent -, web2 none absent -")
}

// TestGrant: a member may have as many twins as the site allows, for as long as it allows. Root has
// no such limits.
func TestGrant(t *testing.T) {
	d := newDesk(t)
	d.write("site.toml", toykat+"[twin]\nmost = 1\nexpires = \"2h\"\n")
	s := d.site()
	of := twinOf("toykat", d.dir, "dev")
	d.must(twins.LimitForMember(d.Session, s, &of))
	if !of.Expires.IsZero() {
		t.Errorf("root's ends at %s", of.Expires)
	}
	d.Member = &member.Person{Name: "ada"}
	of.Options.Owner, of.Expires = "ada", of.Created.Add(3*hour)
	d.wantExit(twins.LimitForMember(d.Session, s, &of), problem.Refused, "may last 2h0m0s at most")
	of.Expires = time.Time{}
	d.must(twins.LimitForMember(d.Session, s, &of))
	if of.Expires.Sub(of.Created) != 2*hour {
		t.Errorf("it ends at %s", of.Expires)
	}
	d.must(d.Register().WriteTwin(of))
	d.wantExit(twins.LimitForMember(d.Session, s, &of), problem.Refused, "at most 1")
}
