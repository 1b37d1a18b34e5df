package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/backups"
	"orrery/internal/control/releases"
	"orrery/internal/control/routines"
	"orrery/internal/control/sites"
	"orrery/internal/control/snapshots"
	"orrery/internal/control/status"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/observe/routine"
	"orrery/internal/problem"
	"orrery/internal/site/event"
)

// scheduled returns a site file with schedules. Its backups go below dir.
func scheduled(text, dir string) string {
	return text + `
[backup]
to     = "` + dir + `/backups"
every  = "1d"
keep   = 2
before = ["switch"]
[snapshot]
every = "1h"
keep  = 2
[watch]
every = "1m"
[alert]
command = ["/bin/true"]
`
}

// routine does a part of what is scheduled, as a timer does.
func (d *desk) routine(part string) error {
	d.Helper()
	return control.Unattended(d.Session, "toykat").Run(d.Context(), apply.TriggerRoutine, part)
}

// forgets makes hosts forget when a routine was last done.
func forgets(t *testing.T, machines ...*machine) {
	t.Helper()
	for _, m := range machines {
		if err := os.RemoveAll(filepath.Join(m.dirs.Site("toykat"), "routines")); err != nil {
			t.Fatal(err)
		}
	}
}

// events returns the events that wait for hooks of the machine, and removes them. It leaves out those
// of disks, because that of the machine on which the test runs may be full.
func (m *machine) events() (all []string) {
	m.t.Helper()
	paths, _ := filepath.Glob(filepath.Join(m.dirs.Site("toykat"), "hooks", "*.json"))
	slices.Sort(paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			m.t.Fatal(err)
		}
		var l struct {
			What struct{ Event, Result, Subject, Why string }
		}
		if err := errors.Join(json.Unmarshal(text, &l), os.Remove(path)); err != nil {
			m.t.Fatal(err)
		}
		if l.What.Event != event.DiskFull {
			all = append(all, strings.TrimSpace(l.What.Event+" "+l.What.Result+" "+l.What.Subject))
		}
	}
	return all
}

// TestScheduledBackups: backups and snapshots are taken as the site file said when the site came up,
// even if it is damaged by now. Only as many are kept as it says, beside those of a user. The end of
// the site ends all of it.
//
// Promise (Hooks): Schedules and alerts follow the record of the last `orrery up`, not the site
// directory; words of nodes and hosts in them are shown as text. With control/routines.TestNode,
// apply/remote.TestRoutines.
func TestScheduledBackups(t *testing.T) {
	d := diskDesk(t)
	below := t.TempDir()
	d.write("site.toml", scheduled(toykat, below))
	d.up()
	p, err := apply.ReadUnattended(d.dirs, "toykat", apply.TriggerRoutine)
	d.must(err)
	if len(p.Every) != 3 || p.Every["watch"] != time.Minute || p.When["backup"].Keep != 2 || len(p.Hooks) != 1 {
		t.Errorf("the plan is %+v", p)
	}
	mine, err := snapshots.Take(t.Context(), d.Session, d.site(), nil, snapshots.Extras{})
	d.must(err)
	s := d.site()
	d.write("site.toml", "[nonsense")
	for range 3 {
		d.must(d.routine(routine.Backup))
		d.must(d.routine(routine.Backup)) // it is not due
		d.must(d.routine(routine.Snapshot))
		forgets(t, d.machine)
	}
	d.must(d.routine(routine.Snapshot))
	taken, err := backups.List(below + "/backups")
	d.must(err)
	if len(taken) != 2 || taken[0].Nodes != 3 {
		t.Errorf("the backups are %+v", taken)
	}
	all, err := snapshots.List(t.Context(), d.Session, s)
	d.must(err)
	if len(all) != 3 || all[0].ID != mine.ID || all[0].Scheduled || !all[1].Scheduled || !all[2].Scheduled {
		t.Errorf("%d snapshots are left", len(all))
	}
	f, err := d.Hosts(t.Context(), s)
	d.must(err)
	went, err := status.Routines(t.Context(), s, f)
	d.must(err)
	if len(went) != 3 || !went[0].Done.IsZero() || went[1].Made != all[2].ID || went[1].Next.IsZero() || went[1].Late {
		t.Errorf("status shows %+v", went)
	}
	d.write("site.toml", scheduled(toykat, below))
	_, err = sites.Down(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
	if _, err := apply.ReadUnattended(d.dirs, "toykat", apply.TriggerRoutine); err == nil {
		t.Error("routines outlive the site")
	}
	d.wantExit(d.routine(routine.Backup), problem.Failed)
}

// TestBackupFails: a backup that fails is on record, and hooks get one event until one succeeds. A
// switch that must follow a backup does not happen without it. A backup by hand counts.
func TestBackupFails(t *testing.T) {
	d := diskDesk(t)
	below := t.TempDir()
	blocked := filepath.Join(below, "backups")
	d.must(os.WriteFile(blocked, []byte("not a directory"), 0o600))
	d.write("site.toml", scheduled(toykat, below))
	d.up()
	d.stage(700)
	d.events()
	for range 2 {
		if err := d.routine(routine.Backup); err == nil {
			t.Error("a backup goes into a file")
		}
		path := filepath.Join(d.dirs.Site("toykat"), "routines", "backup.json")
		r, err := host.ReadJSON[routine.Record](path)
		d.must(err)
		r.Begun = r.Begun.Add(-2 * time.Hour) // then it tries again
		d.must(host.WriteJSON(path, 0o600, r))
	}
	if got := d.events(); !slices.Equal(got, []string{"backup-failed failed"}) {
		t.Errorf("hooks get %q", got)
	}
	entries, _, err := d.Host("local", "toykat", nil).Runs.ReadJournal(t.Context(), 0)
	d.must(err)
	if last := entries[len(entries)-1]; last.Kind != "end" || !strings.Contains(last.Result, "backup: ") {
		t.Errorf("the journal has %+v", last)
	}
	_, err = releases.Switch(t.Context(), d.Session, d.site(), nil, releases.SwitchOptions{Release: 700})
	d.wantExit(err, problem.Failed, "the backup before the switch failed; nothing was done", "take \"switch\" out")
	d.wantLive(0)
	d.must(os.Remove(blocked))
	taken, err := routines.BackUp(t.Context(), d.Session)
	d.must(err)
	if taken.Nodes < 3 { // and those in quarantine
		t.Errorf("taken is %+v", taken)
	}
	if got := d.events(); !slices.Equal(got, []string{"backup-failed recovered"}) {
		t.Errorf("hooks get %q", got)
	}
	d.turnTo(700)
	d.wantLive(700)
	if all, err := backups.List(blocked); err != nil || len(all) != 2 {
		t.Errorf("the backups are %+v: %v", all, err)
	}
	d.write("site.toml", toykat)
	_, err = routines.BackUp(t.Context(), d.Session)
	d.wantExit(err, problem.Usage, "does not say where backups go", "[backup] to =")
}

// TestFarRoutines: the host on which the site was last brought up takes backups of all hosts. What
// another host recorded counts.
func TestFarRoutines(t *testing.T) {
	d, other := farDisks(t)
	below := t.TempDir()
	d.write("site.toml", scheduled(twoHosts, below))
	plan := apply.UnattendedPlan{Trigger: apply.TriggerRoutine, Host: "sv2", Every: map[string]time.Duration{"watch": 1}}
	d.must(plan.Write(other.dirs, "toykat"))
	d.up()
	if _, err := apply.ReadUnattended(other.dirs, "toykat", apply.TriggerRoutine); err == nil {
		t.Error("the host of a former run goes on")
	}
	d.must(d.routine(routine.Backup))
	r, err := other.Host("sv2", "toykat", nil).State.Routine(t.Context(), routine.Backup)
	d.must(err)
	if r.Host != "sv1" || r.Made == "" || r.Done.IsZero() {
		t.Errorf("the other host knows %+v", r)
	}
	forgets(t, d.machine)
	d.must(d.routine(routine.Backup))
	if all, err := backups.List(below + "/backups"); err != nil || len(all) != 1 {
		t.Errorf("there are %d backups: %v", len(all), err)
	}
	forgets(t, d.machine, other)
	d.machine.others = map[string]*machine{}
	d.Links.Close() // a timer starts a process with connections of its own
	if err := d.routine(routine.Backup); err == nil {
		t.Error("a backup is complete without a host")
	}
	if got := d.machine.events(); !slices.Contains(got, "backup-failed failed") {
		t.Errorf("hooks get %q", got)
	}
	for range 2 {
		d.must(d.routine(routine.Watch))
	}
	if got := d.machine.events(); !slices.Equal(got, []string{"host-silent silent host sv2"}) {
		t.Errorf("of a host that does not answer, hooks get %q", got)
	}
}

// TestWatchedNodes: a node whose checks fail or that does not run is reported, and so is a full
// disk.
func TestWatchedNodes(t *testing.T) {
	d := newDesk(t)
	below := t.TempDir()
	d.write("site.toml", scheduled(toykat, below))
	sick := ""
	d.of("toykat").Command = func(_ context.Context, ref engine.Ref, c host.Command) error {
		if c.Args[0] == "ask" && ref.Name == sick {
			return errors.New("it does not answer \x1b[2J")
		}
		return nil
	}
	d.up()
	want := func(events ...string) {
		t.Helper()
		for range 2 {
			d.must(d.routine(routine.Watch))
		}
		got := d.machine.events()
		if !slices.Equal(got, events) {
			t.Errorf("hooks get %q, not %q", got, events)
		}
	}
	want()
	sick = "web1"
	want("node-unhealthy unhealthy node web1")
	want()
	sick = "web2"
	want("node-unhealthy recovered node web1", "node-unhealthy unhealthy node web2")
	sick = ""
	want("node-unhealthy recovered node web2")
	_, err := sites.Stop(t.Context(), d.Session, d.site(), []string{"db"})
	d.must(err)
	want("node-unhealthy unhealthy node db")
	_, err = sites.Start(t.Context(), d.Session, d.site(), []string{"db"})
	d.must(err)
	want("node-unhealthy recovered node db")
}
